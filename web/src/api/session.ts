// The user's token, kept for as long as the tab is open.

import { Observable } from "../lib/observable";
import { decoded } from "../lib/parse";

const KEY = "carma-token";

/** The token, if any; a manager behind a bridge needs none. */
export const token = new Observable<string | null>(null);

/** Whether the manager refused the token, or asks for one. */
export const signedOut = new Observable(false);

/** Takes the token of this tab, or of the address, which it removes from there. A link does not replace the token of a signed-in user. */
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

/** The headers that identify the user. */
export function credentials(): Record<string, string> {
  const given = token.get();
  return given ? { authorization: `Bearer ${given}` } : {};
}
