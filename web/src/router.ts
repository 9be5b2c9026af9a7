// Which page is shown: the part of the address after #.

import { Observable } from "./lib/observable";
import { decoded } from "./lib/parse";

interface Route {
  /** `gpu` and `s0/gpu1` for `#/gpu/s0%2Fgpu1`. */
  page: string;
  argument: string;
  query: URLSearchParams;
  /** Counts navigations, also to the same address. */
  visit: number;
}

export function parseRoute(hash: string, visit = 0): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", argument = ""] = path.split("/", 2);
  return { page, argument: decoded(argument), query: new URLSearchParams(query), visit };
}

/** An address within the page. */
export function to(page: string, argument?: string | number, query: Record<string, string> = {}): string {
  const set = Object.entries(query).filter(([, value]) => value !== "");
  const text = new URLSearchParams(set).toString();
  return `#/${page}${argument === undefined ? "" : `/${encodeURIComponent(argument)}`}${text ? `?${text}` : ""}`;
}

export const toJob = (id: number) => to("job", id);
export const toGpu = (device: string) => to("gpu", device);

export const route = new Observable<Route>(parseRoute(""));

export function followAddress(): void {
  const read = () => route.set(parseRoute(location.hash, route.get().visit + 1));
  addEventListener("hashchange", read);
  read();
}

/** Changes the query of the current page, without an entry in the browser's history. */
export function setQuery(changes: Record<string, string>): void {
  const { page, argument, query, visit } = route.get();
  const address = to(page, argument || undefined, { ...Object.fromEntries(query), ...changes });
  history.replaceState(null, "", address);
  route.set(parseRoute(address, visit));
}
