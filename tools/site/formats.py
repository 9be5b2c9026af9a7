"""The reference of files that the program writes, from files that it wrote."""

import csv
import json
import subprocess
import tempfile
from pathlib import Path

from api import cell, table

HEAD = """# File formats

Files that CARMA writes, from a simulation of three jobs and from a manager that ran one job. `carma COMMAND --help` lists the columns of files that it reads: [commands](commands.md).
"""


def simulated(program):
    """Files of a small simulation, by name."""
    with tempfile.TemporaryDirectory() as folder:

        def carma(*arguments):
            return subprocess.run([program, *arguments], check=True, capture_output=True, text=True, cwd=folder).stdout

        carma("trace", "generate", "--jobs", "3", "--seed", "1", "-o", "mix.csv")
        carma("simulate", "mix.csv", "--jobs", "jobs.csv", "--event-log", "log.jsonl")
        files = {name: (Path(folder) / name).read_text() for name in ("mix.csv", "jobs.csv", "log.jsonl")}
        return {**files, "compared.csv": carma("compare", "mix.csv", "--policies", "magm,carma", "--csv")}


def page(files, exported):
    """The page: a section for each file."""
    return "\n".join(
        [
            HEAD,
            "## Trace\n",
            "What `carma trace generate -o` writes. Lines with `#` are comments. [The simulator](../simulator.md#traces) lists the other formats that are read.\n",
            f"```text\n{files['mix.csv'].rstrip()}\n```\n",
            "## Jobs of a simulation\n",
            "What `carma simulate --jobs` writes: a row for each job.\n",
            *columns(files["jobs.csv"]),
            "## Comparison\n",
            "What `carma compare --csv` prints: a row for each policy.\n",
            *columns(files["compared.csv"]),
            "## Jobs of a manager\n",
            "What `carma export` prints: a row for each attempt. `carma export --format json` prints jobs as in the [API](api-types.md), one in a line.\n",
            *columns(exported),
            "## Event log\n",
            "What `carma up --record` and `carma simulate --event-log` write, and `carma replay-log` checks: JSON lines. The first line has the version of the format and all settings. Each other line is an event of the scheduler with the actions that followed.\n",
            *log(files["log.jsonl"]),
        ]
    )


def columns(text):
    """The columns of a CSV file, with the values of its last complete row."""
    rows = [row for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")) if None not in row.values()]
    return table(["column", "example"], [[f"`{name}`", f"`{shortened(value)}`" if value else ""] for name, value in rows[-1].items()])


def shortened(value, most=80):
    text = cell(value)
    return text if len(text) <= most else f"{text[:most]}..."


def log(text):
    """The first line of each kind in an event log."""
    lines, kinds = [json.loads(line) for line in text.splitlines()], {}
    for line in lines[1:]:
        kinds.setdefault(kind(line), line)
    rows = [[f"`{name}`", f"`{shortened(json.dumps(line), 160)}`"] for name, line in kinds.items()]
    return [f"First line: `{shortened(json.dumps(lines[0]), 160)}`\n", *table(["event", "first line of this kind"], rows)]


def kind(line):
    return line["event"]["event"] if "event" in line else next(iter(line))
