export function History(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
