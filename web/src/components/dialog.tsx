// A dialog that asks before an action.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/request";

export function ConfirmDialog(props: {
  title: string;
  confirm: string;
  danger?: boolean;
  act: () => Promise<void>;
  close: () => void;
  children?: ComponentChildren;
}) {
  const { title, confirm, danger = false, act, close, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  // A layout effect, so that an Escape pressed at once closes the dialog too.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const go = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await act();
      close();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={close}>
      <form onSubmit={go}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {problem && (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={close}>
            Go back
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={busy}>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
