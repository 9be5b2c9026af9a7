// Filters of a list of jobs: text, state, user. All of them are in the address.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useObservable } from "../lib/observable";
import { route, setQuery } from "../router";

export function Filters(props: {
  /** What the text is compared with. */
  hint: string;
  phases: readonly string[];
  /** Delay after the last key press, in milliseconds. */
  typing?: number;
  children?: ComponentChildren;
}) {
  const { hint, phases, typing = 0, children } = props;
  const { query } = useObservable(route);
  const [text, setText] = useState(query.get("text") ?? "");
  useEffect(() => {
    if (text === (route.get().query.get("text") ?? "")) return;
    const timer = setTimeout(() => setQuery({ text }), typing);
    return () => clearTimeout(timer);
  }, [text, typing]);
  return (
    <search class="filters">
      <label>
        Find
        <input type="search" placeholder={hint} value={text} onInput={event => setText(event.currentTarget.value)} />
      </label>
      <label>
        State
        <select value={query.get("state") ?? ""} onChange={event => setQuery({ state: event.currentTarget.value })}>
          <option value="">any</option>
          {phases.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="tick-box">
        <input
          type="checkbox"
          checked={query.has("mine")}
          onChange={event => setQuery({ mine: event.currentTarget.checked ? "yes" : "" })}
        />
        mine alone
      </label>
      {children}
    </search>
  );
}
