// The policies that may be named.

/** What may be written, as `carma policies` lists it. */
const POLICIES: [string, string][] = [
  ["carma", "predicted progress: where the job adds most and slows nobody too much"],
  ["exclusive", "the first idle GPU; nothing is shared"],
  ["rr", "round-robin: the next open GPU in the ring, however busy"],
  ["ff", "first fit: the first GPU with enough memory"],
  ["bf", "best fit: the GPU with the least available memory that is enough"],
  ["magm", "most available GPU memory: the GPU with the most memory left"],
  ["lug", "least utilised GPU: the GPU with the lowest SM activity"],
  ["horus", "Horus: expected GPU utilisations sum to at most 100 %"],
  ["lucid", "Lucid: two jobs a GPU, whose sharing scores sum to at most 2"],
];

/** What may stand before each of them. */
const VARIANTS: [string, string][] = [
  ["est-POLICY", "goes by estimates even where a need is declared"],
  ["or-POLICY", "asks for the configured floor of free memory whatever the job, and relies on recovery"],
];

export function Policies() {
  return (
    <div class="policies">
      <p id="policies-hint" class="hint">
        Names with commas between them: {POLICIES.map(([name]) => name).join(", ")}; each also with est- or or- before it, as in or-magm.
      </p>
      <details class="as-table">
        <summary>What they mean</summary>
        <dl class="words">
          {[...POLICIES, ...VARIANTS].map(([name, meaning]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}
