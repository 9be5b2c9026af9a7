// A choice of one of a few options.

export function Choices<Key extends string>(props: {
  label: string;
  options: Record<Key, string>;
  chosen: Key;
  choose: (key: Key) => void;
}) {
  const { label, options, chosen, choose } = props;
  return (
    <fieldset class="choices">
      <legend class="unseen">{label}</legend>
      {(Object.entries(options) as [Key, string][]).map(([key, name]) => (
        <button key={key} type="button" aria-pressed={key === chosen} onClick={() => choose(key)}>
          {name}
        </button>
      ))}
    </fieldset>
  );
}
