"""The reference of metrics, from what `carma metrics` prints."""

import re


def page(text):
    """The page: a row for each metric, with its kind and its labels."""
    lines = ["# All metrics", "", "What a manager with one GPU serves at `/metrics` after its first job. [Metrics](../metrics.md) explains them.", ""]
    lines += ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name, meaning in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
        labels = set()
        for sample in re.findall(rf"^{name}(?:_bucket|_sum|_count)?{{(.*)}}", text, re.MULTILINE):
            labels.update(re.findall(r'(\w+)="', sample))
        shown = ", ".join(f"`{label}`" for label in sorted(labels))
        lines.append(f"| `{name}` | {kinds.get(name, '')} | {shown} | {meaning.replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, ""])
