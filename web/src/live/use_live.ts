// Data of the manager, kept up to date.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/request";
import { concerns, listen, type Topic } from "./feed";

export interface Live<T> {
  data: T | undefined;
  /** The data is for another key: that of this key is loading. */
  stale: boolean;
  /** Why the latest attempt to load it failed. */
  problem: string | undefined;
  reload: () => void;
}

/**
 * Loads at once, whenever the key changes, and when one of the topics changes: at most once in `every` milliseconds,
 * one at a time, and not while the page is hidden. Old data stays until the new data is there.
 */
export function useLive<T>(load: (signal: AbortSignal) => Promise<T>, topics: readonly Topic[], key = "", every = 1000): Live<T> {
  const [held, setHeld] = useState<{ key?: string; data?: T; problem?: string }>({});
  const latest = useRef({ load, topics });
  latest.current = { load, topics };
  const again = useRef<() => void>(() => {});

  useEffect(() => {
    const ended = new AbortController();
    let loading = false;
    let wanted = true;
    let due = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const consider = () => {
      if (!wanted || loading || document.hidden || ended.signal.aborted) return;
      clearTimeout(timer);
      const wait = due - performance.now();
      if (wait > 0) timer = setTimeout(consider, wait);
      else void run();
    };
    const run = async () => {
      [loading, wanted, due] = [true, false, performance.now() + every];
      try {
        const data = await latest.current.load(ended.signal);
        if (!ended.signal.aborted) setHeld({ key, data });
      } catch (error) {
        if (!ended.signal.aborted) setHeld(before => ({ ...before, problem: messageOf(error) }));
      }
      loading = false;
      consider();
    };
    const want = () => {
      wanted = true;
      consider();
    };

    again.current = () => {
      due = 0;
      want();
    };
    consider();
    const stop = listen(changed => concerns(changed, latest.current.topics) && want());
    document.addEventListener("visibilitychange", consider);
    return () => {
      ended.abort();
      clearTimeout(timer);
      stop();
      document.removeEventListener("visibilitychange", consider);
    };
  }, [key, every]);

  const reload = useCallback(() => again.current(), []);
  return { data: held.data, stale: held.key !== key, problem: held.problem, reload };
}
