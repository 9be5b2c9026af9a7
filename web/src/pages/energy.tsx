export function Energy(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
