export function Notifications(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
