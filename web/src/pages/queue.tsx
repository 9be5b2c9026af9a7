export function QueuePage(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
