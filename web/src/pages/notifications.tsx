// The user's notifications.

import { useState } from "preact/hooks";
import { get, post, put } from "../api/client";
import { messageOf } from "../api/request";
import type { ChannelTest, Notification, Occasion } from "../api/schema";
import { Pending } from "../components/marks";
import { useLive } from "../live/use_live";

const OCCASIONS: Record<Occasion, string> = {
  done: "a job succeeded",
  failed: "a job failed or was stopped",
  recovered: "a job was requeued after it ran out of memory or lost its GPU",
  idle: "a job holds GPUs without using them",
  stalled: "a job hangs, or is much slower than before",
};

type ChannelKind = "webhook" | "mail" | "desktop" | "command";
const CHANNELS: Record<ChannelKind, { name: string; field?: string; hint?: string }> = {
  mail: { name: "E-mail", field: "Address", hint: "The server sends it with sendmail." },
  webhook: { name: "Webhook", field: "Address", hint: "The server sends a JSON document to this address (POST)." },
  command: {
    name: "Command",
    field: "Command",
    hint: "Your shell runs this command on the server, in your home directory. Environment variables describe the event.",
  },
  desktop: { name: "Desktop", hint: "Shown on your desktop on the server, with notify-send." },
};

function channelOf(by: Notification["by"]): [ChannelKind, string] {
  if (typeof by === "string") return [by, ""];
  const [channel, value] = Object.entries(by)[0] as [ChannelKind, string];
  return [channel, value];
}

const channelFrom = (channel: ChannelKind, value: string): Notification["by"] =>
  channel === "desktop" ? "desktop" : ({ [channel]: value } as Notification["by"]);

export function Notifications() {
  const kept = useLive(signal => get("/v1/notifications", { signal }), []);
  return (
    <>
      <h1>Notifications</h1>
      <p class="quiet">CARMA notifies you about your own jobs. The notifications are sent from the server with your rights.</p>
      {kept.data ? <NotificationForm kept={kept.data} /> : <Pending problem={kept.problem} />}
    </>
  );
}

/** The result of a test. */
function testResult(tried: ChannelTest[]): { good: boolean; text: string } {
  const problems = tried.flatMap(({ by, problem }) => (problem ? [`${CHANNELS[channelOf(by)[0]].name}: ${problem}`] : []));
  return problems.length > 0 ? { good: false, text: problems.join("; ") } : { good: true, text: "All notifications were sent." };
}

function NotificationForm({ kept }: { kept: Notification[] }) {
  // Notifications have no ids; numbers keep their form fields apart.
  const [entries, setEntries] = useState(kept.map((notification, key) => ({ key, notification })));
  const [saved, setSaved] = useState(kept.length);
  const [message, setMessage] = useState<{ good: boolean; text: string }>();
  const next = Math.max(-1, ...entries.map(({ key }) => key)) + 1;
  const replace = (key: number, notification: Notification) => {
    setMessage(undefined);
    setEntries(before => before.map(other => (other.key === key ? { key, notification } : other)));
  };
  const showing = async (act: () => Promise<{ good: boolean; text: string }>) => {
    setMessage(undefined);
    try {
      setMessage(await act());
    } catch (error) {
      setMessage({ good: false, text: messageOf(error) });
    }
  };
  const save = (event: Event) => {
    event.preventDefault();
    void showing(async () => {
      await put("/v1/notifications", { body: entries.map(({ notification }) => notification) });
      setSaved(entries.length);
      return { good: true, text: "Saved." };
    });
  };
  const tryAll = () => showing(async () => testResult(await post("/v1/notifications/test")));
  return (
    <form onSubmit={save}>
      {entries.length === 0 && <p>You have no notifications.</p>}
      <ul class="notifications">
        {entries.map(({ key, notification }, place) => (
          <li key={key}>
            <NotificationFields
              number={place + 1}
              notification={notification}
              change={changed => replace(key, changed)}
              remove={() => setEntries(before => before.filter(other => other.key !== key))}
            />
          </li>
        ))}
      </ul>
      <div class="buttons left">
        <button
          type="button"
          onClick={() => setEntries([...entries, { key: next, notification: { on: ["done", "failed"], by: { mail: "" } } }])}
        >
          Add
        </button>
        <button type="submit" class="primary">
          Save
        </button>
        <button type="button" onClick={tryAll} disabled={saved === 0}>
          Test saved notifications
        </button>
      </div>
      <p role="status" class={message ? `notice ${message.good ? "good" : "bad"}` : "unseen"}>
        {message?.text}
      </p>
    </form>
  );
}

function NotificationFields(props: {
  number: number;
  notification: Notification;
  change: (notification: Notification) => void;
  remove: () => void;
}) {
  const { number, notification, change, remove } = props;
  const [channel, value] = channelOf(notification.by);
  const { field, hint } = CHANNELS[channel];
  const toggle = (occasion: Occasion, wanted: boolean) =>
    change({ ...notification, on: wanted ? [...notification.on, occasion] : notification.on.filter(other => other !== occasion) });
  return (
    <fieldset class="notification">
      <legend>Notification {number}</legend>
      <div class="filters">
        <label>
          Channel
          <select
            value={channel}
            onChange={event => change({ ...notification, by: channelFrom(event.currentTarget.value as ChannelKind, "") })}
          >
            {(Object.keys(CHANNELS) as ChannelKind[]).map(name => (
              <option key={name} value={name}>
                {CHANNELS[name].name}
              </option>
            ))}
          </select>
        </label>
        {field && (
          <label class="grow">
            {field}
            <input
              type="text"
              required
              value={value}
              onInput={event => change({ ...notification, by: channelFrom(channel, event.currentTarget.value) })}
            />
          </label>
        )}
        <button type="button" class="danger" onClick={remove} aria-label={`Remove notification ${number}`}>
          Remove
        </button>
      </div>
      {hint && <p class="hint">{hint}</p>}
      <p>Notify me when</p>
      {(Object.keys(OCCASIONS) as Occasion[]).map(occasion => (
        <label key={occasion} class="tick-box">
          <input
            type="checkbox"
            checked={notification.on.includes(occasion)}
            onChange={event => toggle(occasion, event.currentTarget.checked)}
          />
          {OCCASIONS[occasion]}
        </label>
      ))}
    </fieldset>
  );
}
