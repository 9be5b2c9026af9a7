// Why a job waits, what stands in the way on each GPU or host, and what pools do for it.

import type { Why } from "../api/schema";
import { GpuOnNode } from "./marks";

export function WhyView({ why }: { why: Why }) {
  return (
    <>
      <p class="reason">{why.summary}</p>
      {(why.pools?.length ?? 0) > 0 && (
        <ul class="why-pools" aria-label="Pools">
          {why.pools?.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      <ul class="answers">
        {why.devices.map(({ device, texts }) => (
          <li key={device}>
            <GpuOnNode device={device} />
            <Texts texts={texts} />
          </li>
        ))}
        {why.hosts?.map(({ server, texts }) => (
          <li key={server}>
            server {server}
            <Texts texts={texts} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Texts({ texts }: { texts: string[] }) {
  return (
    <ul>
      {texts.map(text => (
        <li key={text} class="plain">
          {text}
        </li>
      ))}
    </ul>
  );
}
