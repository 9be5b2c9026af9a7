// Who we are to the manager: a token, kept for as long as the tab is open.

import { Observable } from "../lib/observable";

const KEY = "carma-token";

/** The token that was given, if any; a manager that knows callers otherwise needs none. */
export const token = new Observable<string | null>(null);

/** Whether the manager refused us for want of a (right) token. */
export const signedOut = new Observable(false);

/** Takes the token of the address, where it does not stay, or that of this tab. */
export function restoreToken(): void {
  const given = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (given) {
    sessionStorage.setItem(KEY, decodeURIComponent(given));
    history.replaceState(null, "", `${location.pathname}#/`);
    signedOut.set(false);
  }
  token.set(sessionStorage.getItem(KEY));
}

export function signIn(given: string): void {
  sessionStorage.setItem(KEY, given);
  token.set(given);
  signedOut.set(false);
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  token.set(null);
  signedOut.set(true);
}

/** What says who asks. */
export function credentials(): Record<string, string> {
  const given = token.get();
  return given ? { authorization: `Bearer ${given}` } : {};
}
