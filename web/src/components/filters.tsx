// Filters of a list of jobs: text, state, outcome, user. All of them are in the address.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useObservable } from "../lib/observable";
import { OUTCOMES } from "../lib/words";
import { route, setQuery } from "../router";

export function Filters(props: {
  /** Where the text is searched. */
  hint: string;
  phases: readonly string[];
  /** Whether jobs have ended, so that they can be filtered by outcome. */
  outcomes?: boolean;
  /** Delay after the last key press, in milliseconds. */
  typing?: number;
  children?: ComponentChildren;
}) {
  const { hint, phases, outcomes = false, typing = 0, children } = props;
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
      <Select label="State" name="state" options={phases.map(phase => [phase, phase])} />
      {outcomes && <Select label="Outcome" name="outcome" options={Object.entries(OUTCOMES)} />}
      <TickFilter name="mine">Only mine</TickFilter>
      {children}
    </search>
  );
}

function Select({ label, name, options }: { label: string; name: string; options: [value: string, name: string][] }) {
  const { query } = useObservable(route);
  return (
    <label>
      {label}
      <select value={query.get(name) ?? ""} onChange={event => setQuery({ [name]: event.currentTarget.value })}>
        <option value="">any</option>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A filter that is on or off. */
export function TickFilter({ name, children }: { name: string; children: string }) {
  const { query } = useObservable(route);
  return (
    <label class="tick-box">
      <input type="checkbox" checked={query.has(name)} onChange={event => setQuery({ [name]: event.currentTarget.checked ? "yes" : "" })} />
      {children}
    </label>
  );
}
