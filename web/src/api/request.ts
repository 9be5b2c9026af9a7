// Requests to the manager: JSON, or a stream of text.

import { credentials, signedOut } from "./session";

/** The manager refused a request. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

/** The manager did not answer. */
export class Unreachable extends Error {}

export type Query = Record<string, unknown>;

/** A path with a query, without unset and empty values. */
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
    throw new Unreachable("the manager does not answer");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) signedOut.set(true);
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<Error> {
  const body: unknown = await answer.json().catch(() => null);
  if (typeof body === "object" && body !== null && "kind" in body && "message" in body) {
    return new Refused(answer.status, String(body.kind), String(body.message));
  }
  // A bridge answers so while the manager does not run.
  if (answer.status >= 502) return new Unreachable("the manager does not answer");
  return new Refused(answer.status, "internal", `the manager answered ${answer.status}`);
}

/** Reads a body in pieces as they arrive; `opened` is called when the answer begins. */
export async function stream(path: string, signal: AbortSignal, take: (text: string) => void, opened?: () => void): Promise<void> {
  const answer = await send("GET", path, undefined, signal);
  opened?.();
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  while (reader) {
    const { done, value } = await reader.read().catch(error => {
      if (signal.aborted) throw error;
      throw new Unreachable("the manager stopped answering");
    });
    if (done) return;
    take(decoder.decode(value, { stream: true }));
  }
}

/** The message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
