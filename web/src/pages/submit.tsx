// The form to submit a job, or to preview its placement.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api/client";
import { messageOf } from "../api/request";
import type { Forecast, Submission } from "../api/schema";
import { EstimateBars } from "../components/estimate_bars";
import { GpuLinks } from "../components/marks";
import { WhyView } from "../components/why_view";
import { memory } from "../lib/format";
import { useObservable } from "../lib/observable";
import { bodyFrom, type Filled } from "../lib/submission";
import { myself } from "../live/manager";
import { toJob } from "../router";

const EMPTY: Filled = {
  command: "",
  name: "",
  directory: "",
  gpus: "1",
  memory: "",
  priority: "0",
  limit: "",
  shell: false,
  exclusive: false,
  hold: false,
};

type Box = "shell" | "exclusive" | "hold";
type Answer = { problem: string } | { forecast: Forecast } | { jobs: number[]; notes: string[] };

export function Submit() {
  const me = useObservable(myself);
  const [filled, setFilled] = useState(EMPTY);
  const [answer, setAnswer] = useState<Answer>();
  const [busy, setBusy] = useState(false);
  const field = (name: keyof Filled) => (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    setFilled(before => ({ ...before, [name]: event.currentTarget.value }));
  const box = (name: Box) => ({
    checked: filled[name],
    change: (checked: boolean) => setFilled(before => ({ ...before, [name]: checked })),
  });

  const send = async (use: (body: Submission) => Promise<Answer>) => {
    setBusy(true);
    try {
      setAnswer(await use(bodyFrom(filled)));
    } catch (error) {
      setAnswer({ problem: messageOf(error) });
    }
    setBusy(false);
  };
  const dryRun = () =>
    send(async body => {
      const [forecast] = await post("/v1/forecast", { body });
      return forecast ? { forecast } : { problem: "the manager foresees nothing" };
    });
  const submit = () => send(async body => ({ notes: [], ...(await post("/v1/jobs", { body })) }));

  return (
    <>
      <h1>Submit a job</h1>
      <form
        class="fields"
        onSubmit={event => {
          event.preventDefault();
          void submit();
        }}
      >
        <label class="whole">
          Command
          <textarea
            required
            rows={3}
            spellcheck={false}
            placeholder="python train.py --epochs 90"
            value={filled.command}
            onInput={field("command")}
          />
        </label>
        <TickBox {...box("shell")} whole>
          a script: a shell reads it (otherwise one program and its arguments)
        </TickBox>
        <label>
          Directory
          <input required spellcheck={false} placeholder="/home/me/project" value={filled.directory} onInput={field("directory")} />
          <span class="hint">on the server</span>
        </label>
        <label>
          Name
          <input value={filled.name} onInput={field("name")} />
        </label>
        <label>
          GPUs
          <input type="number" min="0" step="1" required value={filled.gpus} onInput={field("gpus")} />
        </label>
        <label>
          Memory on each GPU
          <input placeholder="12GiB" value={filled.memory} onInput={field("memory")} />
          <span class="hint">empty: it is estimated</span>
        </label>
        <label>
          Time limit
          <input placeholder="12h" value={filled.limit} onInput={field("limit")} />
          <span class="hint">of one attempt; empty: none</span>
        </label>
        <label>
          Priority
          <input type="number" step="1" value={filled.priority} max={me?.operator ? undefined : 0} onInput={field("priority")} />
          {!me?.operator && <span class="hint">above 0 is for operators</span>}
        </label>
        <TickBox {...box("exclusive")}>GPUs of its own</TickBox>
        <TickBox {...box("hold")}>hold it until it is released</TickBox>
        <p class="hint whole">
          The job gets a plain environment, not that of a shell of yours; <code>carma submit</code> takes yours along.
        </p>
        <div class="buttons left whole">
          <button type="button" disabled={busy} onClick={dryRun}>
            Preview placement
          </button>
          <button type="submit" class="primary" disabled={busy}>
            Submit
          </button>
        </div>
      </form>
      <div aria-live="polite" class="answer">
        {answer && <Answered answer={answer} />}
      </div>
    </>
  );
}

function TickBox(props: { checked: boolean; change: (checked: boolean) => void; whole?: boolean; children: string }) {
  return (
    <label class={props.whole ? "tick-box whole" : "tick-box"}>
      <input type="checkbox" checked={props.checked} onChange={event => props.change(event.currentTarget.checked)} /> {props.children}
    </label>
  );
}

function Answered({ answer }: { answer: Answer }): ComponentChildren {
  if ("problem" in answer) return <p class="notice bad">{answer.problem}</p>;
  if ("forecast" in answer) return <ForecastView forecast={answer.forecast} />;
  return (
    <div class="notice good">
      Submitted:{" "}
      {answer.jobs.map(id => (
        <a key={id} href={toJob(id)}>
          job {id}
        </a>
      ))}
      {answer.notes.map(note => (
        <p key={note}>{note}</p>
      ))}
    </div>
  );
}

function ForecastView({ forecast: { estimate, placement, why } }: { forecast: Forecast }) {
  const promised = placement?.devices[0]?.promised;
  return (
    <section aria-labelledby="forecast-title">
      <h2 id="forecast-title">If it were submitted now</h2>
      {placement && (
        <p>
          It would start at once{placement.devices.length > 0 && " on "}
          <GpuLinks devices={placement.devices.map(({ device }) => device)} />
          {promised !== undefined && `, with ${memory(promised)} reserved on each`}.
        </p>
      )}
      {why && !placement && <WhyView why={why} />}
      <EstimateBars estimate={estimate} attempts={[]} />
      {estimate.notes.map(note => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </section>
  );
}
