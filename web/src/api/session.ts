// Who we are to the manager: a token, kept for as long as the tab is open.

import { Observable } from "../lib/observable";
import { decoded } from "../lib/parse";

const KEY = "carma-token";

/** The token that was given, if any; a manager that knows callers otherwise needs none. */
export const token = new Observable<string | null>(null);

/** Whether the manager refused us for want of a (right) token. */
export const signedOut = new Observable(false);

/** Takes the token of this tab, or that of the address, where it does not stay: a link makes nobody into somebody else. */
export function restoreToken(): void {
  const held = sessionStorage.getItem(KEY);
  const given = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (given) history.replaceState(null, "", `${location.pathname}#/`);
  if (given && (!held || signedOut.get())) signIn(decoded(given));
  else token.set(held);
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
