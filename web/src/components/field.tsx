// A field of a form, with its hint and the message about what is wrong with it.

interface FieldProps {
  name: string;
  label: string;
  value: string;
  problem: string | undefined;
  change: (value: string) => void;
  hint?: string;
  placeholder?: string;
  type?: "text" | "number";
  required?: boolean;
  /** With more than one line. */
  rows?: number;
}

/** A field with its hint, and the message about what is wrong with it. */
export function Field({ name, label, value, problem, change, hint, rows, type = "text", ...rest }: FieldProps) {
  const described = problem ? `${name}-problem` : hint && `${name}-hint`;
  const common = {
    ...rest,
    id: name,
    name,
    value,
    spellcheck: false,
    "aria-invalid": problem !== undefined,
    "aria-describedby": described,
    onInput: (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => change(event.currentTarget.value),
  };
  return (
    <div class={rows ? "field whole" : "field"}>
      <label for={name}>{label}</label>
      {rows ? (
        <textarea rows={rows} {...common} />
      ) : type === "number" ? (
        <input type="number" {...common} />
      ) : (
        <input type="text" {...common} />
      )}
      {problem ? (
        <span id={`${name}-problem`} class="field-problem" role="alert">
          {problem}
        </span>
      ) : (
        <span id={`${name}-hint`} class="hint">
          {hint}
        </span>
      )}
    </div>
  );
}

export function TickBox(props: { checked: boolean; change: (checked: boolean) => void; whole?: boolean; children: string }) {
  return (
    <label class={props.whole ? "tick-box whole" : "tick-box"}>
      <input type="checkbox" checked={props.checked} onChange={event => props.change(event.currentTarget.checked)} /> {props.children}
    </label>
  );
}
