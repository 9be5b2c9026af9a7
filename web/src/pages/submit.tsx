// The form to submit a job, or to preview its placement.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { post } from "../api/client";
import { messageOf } from "../api/request";
import type { Forecast, Submission } from "../api/schema";
import { EstimateBars } from "../components/estimate_bars";
import { Field, TickBox } from "../components/field";
import { GpuLinks } from "../components/marks";
import { WhyView } from "../components/why_view";
import { memory } from "../lib/format";
import { useObservable } from "../lib/observable";
import { bodyFrom, type Filled, type Problems, problemsOf } from "../lib/submission";
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
type TextField = Exclude<keyof Filled, Box>;
type Answer = { problem: string } | { forecast: Forecast } | { jobs: number[]; notes: string[] };

export function Submit() {
  const me = useObservable(myself);
  const form = useRef<HTMLFormElement>(null);
  const [filled, setFilled] = useState(EMPTY);
  const [problems, setProblems] = useState<Problems>({});
  const [answer, setAnswer] = useState<Answer>();
  const [busy, setBusy] = useState(false);
  const change = (name: keyof Filled, value: string | boolean) => {
    setFilled(before => ({ ...before, [name]: value }));
    setProblems(({ [name]: _, ...others }) => others);
  };
  const field = (name: TextField) => ({
    name,
    problem: problems[name],
    value: filled[name],
    change: (value: string) => change(name, value),
  });
  const box = (name: Box) => ({ checked: filled[name], change: (checked: boolean) => change(name, checked) });

  const send = async (use: (body: Submission) => Promise<Answer>) => {
    const found = problemsOf(filled);
    const [first] = Object.keys(found);
    setProblems(found);
    setAnswer(undefined);
    if (first) {
      form.current?.querySelector<HTMLElement>(`[name="${first}"]`)?.focus();
      return;
    }
    setBusy(true);
    try {
      setAnswer(await use(bodyFrom(filled)));
    } catch (error) {
      setAnswer({ problem: messageOf(error) });
    }
    setBusy(false);
  };
  const preview = () =>
    send(async body => {
      const [forecast] = await post("/v1/forecast", { body });
      return forecast ? { forecast } : { problem: "The manager sent no preview." };
    });
  const submit = () => send(async body => ({ notes: [], ...(await post("/v1/jobs", { body })) }));

  return (
    <>
      <h1>Submit a job</h1>
      <form
        ref={form}
        class="fields"
        noValidate
        onSubmit={event => {
          event.preventDefault();
          void submit();
        }}
      >
        <Field {...field("command")} label="Command" rows={3} placeholder="python train.py --epochs 90" required />
        <TickBox {...box("shell")} whole>
          Run as a shell script (otherwise: one program with its arguments)
        </TickBox>
        <Field
          {...field("directory")}
          label="Directory"
          placeholder="/home/me/project"
          hint="The job runs in this directory on the server."
          required
        />
        <Field {...field("name")} label="Name" />
        <Field {...field("gpus")} label="GPUs" type="number" required />
        <Field {...field("memory")} label="Memory per GPU" placeholder="12GiB" hint="Empty: CARMA estimates it." />
        <Field {...field("limit")} label="Time limit" placeholder="12h" hint="For each attempt. Empty: no limit." />
        <Field
          {...field("priority")}
          label="Priority"
          type="number"
          hint={me?.operator ? "Higher starts first." : "Higher starts first. Above 0: operators only."}
        />
        <TickBox {...box("exclusive")}>Exclusive GPUs (not shared with other jobs)</TickBox>
        <TickBox {...box("hold")}>Hold the job until I release it</TickBox>
        <p class="hint whole">
          A job from this page gets only basic environment variables. Use <code>carma submit</code> to pass on those of your shell.
        </p>
        <div class="buttons left whole">
          <button type="button" disabled={busy} onClick={preview}>
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
  const reserved = placement?.devices[0]?.reserved;
  return (
    <section aria-labelledby="forecast-title">
      <h2 id="forecast-title">Preview</h2>
      {placement && (
        <p>
          The job would start now{placement.devices.length > 0 && " on "}
          <GpuLinks devices={placement.devices.map(({ device }) => device)} />
          {reserved !== undefined && `, with ${memory(reserved)} reserved on each GPU`}.
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
