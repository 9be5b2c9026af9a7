export function WhatIfPage(_: { argument: string }) {
  return <p class="quiet">…</p>;
}
