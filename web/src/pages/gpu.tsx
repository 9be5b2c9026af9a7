export function GpuPage(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
