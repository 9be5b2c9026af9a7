// A value with listeners.

import { useEffect, useState } from "preact/hooks";

export class Observable<T> {
  readonly #watchers = new Set<(value: T) => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /** Calls for every change, until the returned function is called. */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }
}

/** The current value; the component is drawn again when it changes. */
export function useObservable<T>(observable: Observable<T>): T {
  const [value, setValue] = useState(observable.get());
  useEffect(() => {
    setValue(() => observable.get());
    return observable.watch(changed => setValue(() => changed));
  }, [observable]);
  return value;
}
