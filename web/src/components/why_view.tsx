// Why a job waits, and what stands in the way on each GPU or host.

import type { Why } from "../api/schema";
import { GpuLink } from "./marks";

export function WhyView({ why }: { why: Why }) {
  return (
    <>
      <p class="reason">{why.summary}</p>
      <ul class="answers">
        {why.devices.map(({ device, texts }) => (
          <li key={device}>
            <GpuLink device={device} />
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
