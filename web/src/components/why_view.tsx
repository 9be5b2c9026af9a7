// Why a job waits, and what each GPU says to it.

import type { Why } from "../api/types";
import { explanation } from "../lib/words";
import { GpuLink } from "./marks";

export function WhyView({ why }: { why: Why }) {
  const { reason, answers } = explanation(why.text);
  return (
    <>
      <p class="reason">{reason}</p>
      <ul class="answers">
        {answers.map(({ device, says }) => (
          <li key={device}>
            {why.devices.some(answer => answer.device === device) ? <GpuLink device={device} /> : device}
            <ul>
              {says.map(words => (
                <li key={words} class="plain">
                  {words}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </>
  );
}
