export function Submit(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
