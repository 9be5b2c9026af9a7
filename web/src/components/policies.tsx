// The policies that may be named, as the manager lists them.

import { get } from "../api/client";
import { useLive } from "../live/use_live";

export function Policies() {
  const { data } = useLive(signal => get("/v1/policies", { signal }), []);
  if (!data) return null;
  const names = data.policies.map(({ name }) => name);
  const prefixes = data.variants.map(({ prefix }) => prefix);
  const meanings = [...data.policies, ...data.variants.map(({ prefix, about }) => ({ name: `${prefix}POLICY`, about }))];
  return (
    <div class="policies">
      <p id="policies-hint" class="hint">
        Policies, separated by commas: {names.join(", ")}. You can put {prefixes.join(" or ")} before each of them, for example{" "}
        {prefixes.at(-1)}
        {names.at(-1)}.
      </p>
      <details class="as-table">
        <summary>What these policies do</summary>
        <dl class="words">
          {meanings.map(({ name, about }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{about}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}
