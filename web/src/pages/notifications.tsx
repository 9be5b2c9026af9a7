// What one wants to be told of, and how.

import { useState } from "preact/hooks";
import { notifications as loadWishes, saveNotifications, tryNotifications } from "../api/calls";
import { reasonOf } from "../api/request";
import type { Notification, Occasion, Tried } from "../api/types";
import { Pending } from "../components/marks";
import { useLive } from "../live/use_live";

const OCCASIONS: Record<Occasion, string> = {
  done: "a job has succeeded",
  failed: "a job has ended otherwise",
  recovered: "a job was put back after it ran out of memory or lost its GPU",
  idle: "a job holds its GPUs and does not use them",
};

type Way = "webhook" | "mail" | "desktop" | "command";
const WAYS: Record<Way, { name: string; field?: string; hint?: string }> = {
  mail: { name: "E-mail", field: "Address", hint: "sent by the server's sendmail" },
  webhook: { name: "Webhook", field: "Address", hint: "a JSON document is sent there (POST)" },
  command: {
    name: "Command",
    field: "Command",
    hint: "your shell runs it on the server, in your home; what happened is in its environment",
  },
  desktop: { name: "Desktop", hint: "shown on your desktop on the server, by notify-send" },
};

function wayOf(by: Notification["by"]): [Way, string] {
  if (typeof by === "string") return [by, ""];
  const [way, value] = Object.entries(by)[0] as [Way, string];
  return [way, value];
}

const byOf = (way: Way, value: string): Notification["by"] => (way === "desktop" ? "desktop" : ({ [way]: value } as Notification["by"]));

export function Notifications() {
  const kept = useLive(loadWishes, []);
  return (
    <>
      <h1>Notifications</h1>
      <p class="quiet">They are about your own jobs, and are sent by processes of your own on the server.</p>
      {kept.data ? <Wishes kept={kept.data} /> : <Pending problem={kept.problem} />}
    </>
  );
}

/** What became of trying them. */
function triedWords(tried: Tried[]): { good: boolean; text: string } {
  const problems = tried.flatMap(({ by, problem }) => (problem ? [`${WAYS[wayOf(by)[0]].name}: ${problem}`] : []));
  return problems.length > 0 ? { good: false, text: problems.join("; ") } : { good: true, text: "All were sent." };
}

function Wishes({ kept }: { kept: Notification[] }) {
  // Wishes have no names of their own; numbers keep their fields apart while they are edited.
  const [wishes, setWishes] = useState(kept.map((wish, key) => ({ key, wish })));
  const [saved, setSaved] = useState(kept.length);
  const [said, setSaid] = useState<{ good: boolean; text: string }>();
  const next = Math.max(-1, ...wishes.map(({ key }) => key)) + 1;
  const replace = (key: number, wish: Notification) => {
    setSaid(undefined);
    setWishes(before => before.map(other => (other.key === key ? { key, wish } : other)));
  };
  const saying = async (act: () => Promise<{ good: boolean; text: string }>) => {
    setSaid(undefined);
    try {
      setSaid(await act());
    } catch (error) {
      setSaid({ good: false, text: reasonOf(error) });
    }
  };
  const save = (event: Event) => {
    event.preventDefault();
    void saying(async () => {
      await saveNotifications(wishes.map(({ wish }) => wish));
      setSaved(wishes.length);
      return { good: true, text: "Saved." };
    });
  };
  const tryAll = () => saying(async () => triedWords(await tryNotifications()));
  return (
    <form onSubmit={save}>
      {wishes.length === 0 && <p>You are told of nothing.</p>}
      <ul class="wishes">
        {wishes.map(({ key, wish }, place) => (
          <li key={key}>
            <WishFields
              number={place + 1}
              wish={wish}
              change={changed => replace(key, changed)}
              remove={() => setWishes(before => before.filter(other => other.key !== key))}
            />
          </li>
        ))}
      </ul>
      <div class="buttons left">
        <button type="button" onClick={() => setWishes([...wishes, { key: next, wish: { on: ["done", "failed"], by: { mail: "" } } }])}>
          Add
        </button>
        <button type="submit" class="primary">
          Save
        </button>
        <button type="button" onClick={tryAll} disabled={saved === 0}>
          Try those that are saved
        </button>
      </div>
      <p role="status" class={said ? `notice ${said.good ? "good" : "bad"}` : "unseen"}>
        {said?.text}
      </p>
    </form>
  );
}

function WishFields(props: { number: number; wish: Notification; change: (wish: Notification) => void; remove: () => void }) {
  const { number, wish, change, remove } = props;
  const [way, value] = wayOf(wish.by);
  const { field, hint } = WAYS[way];
  const toggle = (occasion: Occasion, wanted: boolean) =>
    change({ ...wish, on: wanted ? [...wish.on, occasion] : wish.on.filter(other => other !== occasion) });
  return (
    <fieldset class="wish">
      <legend>Notification {number}</legend>
      <div class="filters">
        <label>
          How
          <select value={way} onChange={event => change({ ...wish, by: byOf(event.currentTarget.value as Way, "") })}>
            {(Object.keys(WAYS) as Way[]).map(name => (
              <option key={name} value={name}>
                {WAYS[name].name}
              </option>
            ))}
          </select>
        </label>
        {field && (
          <label class="grow">
            {field}
            <input type="text" required value={value} onInput={event => change({ ...wish, by: byOf(way, event.currentTarget.value) })} />
          </label>
        )}
        <button type="button" class="danger" onClick={remove} aria-label={`Remove notification ${number}`}>
          Remove
        </button>
      </div>
      {hint && <p class="hint">{hint}</p>}
      <p>When</p>
      {(Object.keys(OCCASIONS) as Occasion[]).map(occasion => (
        <label key={occasion} class="tick-box">
          <input type="checkbox" checked={wish.on.includes(occasion)} onChange={event => toggle(occasion, event.currentTarget.checked)} />
          {OCCASIONS[occasion]}
        </label>
      ))}
    </fieldset>
  );
}
