export function Help(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
