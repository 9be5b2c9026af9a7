export function JobPage(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
