// Asking the manager: JSON, or a stream of text.

import { credentials, signedOut } from "./session";

/** The manager refused, and says why. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

/** The manager did not answer at all. */
export class Away extends Error {}

type Value = string | number | boolean | null | undefined;
export type Query = Record<string, Value>;

/** A path with a query; what is unset or empty is left out. */
export function address(path: string, query: Query = {}): string {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = credentials();
  if (body !== undefined) headers["content-type"] = "application/json";
  const init: RequestInit = { method, headers, cache: "no-store" };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Away("the manager does not answer");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) signedOut.set(true);
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<Error> {
  const said: unknown = await answer.json().catch(() => null);
  if (typeof said === "object" && said !== null && "kind" in said && "message" in said) {
    return new Refused(answer.status, String(said.kind), String(said.message));
  }
  // A bridge before the manager answers so when there is none behind it.
  if (answer.status >= 502) return new Away("the manager does not answer");
  return new Refused(answer.status, "internal", `the manager answered ${answer.status}`);
}

export async function get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  const answer = await send("GET", address(path, query), undefined, signal);
  return (await answer.json()) as T;
}

export async function act<T>(method: "POST" | "PUT" | "PATCH", path: string, body?: unknown): Promise<T> {
  const answer = await send(method, path, body);
  const text = await answer.text();
  return (text ? JSON.parse(text) : null) as T;
}

/** Hands on a body piece by piece, as it comes; tells when the manager has begun to answer. */
export async function stream(path: string, signal: AbortSignal, take: (text: string) => void, opened?: () => void): Promise<void> {
  const answer = await send("GET", path, undefined, signal);
  opened?.();
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  while (reader) {
    const { done, value } = await reader.read().catch(error => {
      if (signal.aborted) throw error;
      throw new Away("the manager stopped answering");
    });
    if (done) return;
    take(decoder.decode(value, { stream: true }));
  }
}

/** Why something did not work, for people. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
