// Typed calls: paths, parameters, bodies and answers are those of the manager's document. A new endpoint needs nothing here.

import { address, type Query, send } from "./request";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "patch";

/** Paths that have this method. */
type PathWith<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer O> ? O : never;

type Answer<O> = O extends { responses: { 200: { content: { "application/json": infer A } } } } ? A : null;
type InPath<O> = O extends { parameters: { path: infer P } } ? { path: { [K in keyof P]: string | number } } : { path?: undefined };
type InQuery<O> = O extends { parameters: { query: infer Q } }
  ? { query: Q }
  : O extends { parameters: { query?: infer Q } }
    ? { query?: Exclude<Q, undefined> }
    : { query?: undefined };
type InBody<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? { body: B } : { body?: undefined };
type Options<O> = InPath<O> & InQuery<O> & InBody<O> & { signal?: AbortSignal | undefined };
/** Options may be left out where none is required. */
type Rest<T> = Record<never, never> extends T ? [T?] : [T];

interface AnyOptions {
  path?: Record<string, string | number> | undefined;
  query?: Query | undefined;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** The query of a path, for components that are given one. */
export type QueryOf<P extends PathWith<"get">> = NonNullable<Options<Operation<"get", P>>["query"]>;

/** A path with its parameters filled in. */
export function addressOf<P extends PathWith<"get">>(path: P, ...[options]: Rest<Options<Operation<"get", P>>>): string {
  return filled(path, options as AnyOptions | undefined);
}

function filled(path: string, { path: values, query }: AnyOptions = {}): string {
  return address(
    path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values?.[name] ?? "")),
    query,
  );
}

const caller =
  <M extends Method>(method: M) =>
  async <P extends PathWith<M>>(path: P, ...[options]: Rest<Options<Operation<M, P>>>): Promise<Answer<Operation<M, P>>> => {
    const { body, signal } = (options ?? {}) as AnyOptions;
    const answer = await send(method.toUpperCase(), filled(path, options as AnyOptions | undefined), body, signal);
    const text = await answer.text();
    return (text ? JSON.parse(text) : null) as Answer<Operation<M, P>>;
  };

export const get = caller("get");
export const post = caller("post");
export const put = caller("put");
export const patch = caller("patch");
