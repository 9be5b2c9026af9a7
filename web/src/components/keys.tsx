// Keyboard shortcuts, and the dialog that lists them.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { to } from "../router";
import { PLACES, usePlaces } from "./header";

/** The letter after g must follow within this time, in milliseconds. */
const KEY_TIMEOUT = 1500;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** Whether the next page focuses its search field. */
let searching = false;

/** Focuses the search field of a new page, if the shortcut asked for it. */
export function arriveAtSearch(): boolean {
  const wanted = searching;
  searching = false;
  return wanted && focusSearch();
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>("input[type=search]");
  field?.focus();
  field?.select();
  return field !== null;
}

export function KeyList() {
  return (
    <dl class="key-list">
      {usePlaces().map(({ page, name, key }) => (
        <div key={page}>
          <dt>
            <kbd>g</kbd> <kbd>{key}</kbd>
          </dt>
          <dd>{name}</dd>
        </div>
      ))}
      <div>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search (on a page without a search field: search the history)</dd>
      </div>
      <div>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>Show these keys</dd>
      </div>
    </dl>
  );
}

export function Keys() {
  const [open, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    let going = 0;
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const place = performance.now() - going < KEY_TIMEOUT && PLACES.find(({ key }) => key === event.key);
      going = 0;
      if (place) location.hash = to(place.page);
      else if (event.key === "g") going = performance.now();
      else if (event.key === "?") setOpen(true);
      else if (event.key === "/") {
        if (!focusSearch()) {
          searching = true;
          location.hash = to("history");
        }
      } else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useLayoutEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={() => setOpen(false)}>
      <h2 id="keys-title">Keyboard shortcuts</h2>
      <KeyList />
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
