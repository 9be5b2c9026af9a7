"""What carma prints, once for each command: several tables come from the same run."""

import csv
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

#: The traces of the suite: the folder of those that were generated, and the published ones with their number of GPUs.
SUITE = Path(__file__).resolve().parents[2] / "crates/carma-sim/suite"
PUBLISHED = {"philly60_jobs": 3, "carma_mix90": 4, "carma_heavy60": 4, "carma_t1_60": 4, "carma_t2_60": 4}
#: What the scheduler knows in all comparisons of the documents.
ERRORS = ("--memory-error", "0.1", "--utilisation-error", "0.3")


def carma(*arguments, kept=True):
    """Standard output of carma. `CARMA_KEPT` is a folder for what was printed before; what depends on a file of ours is not kept."""
    words = [str(word) for word in arguments]
    folder = os.environ.get("CARMA_KEPT") if kept else None
    kept = Path(folder) / hashlib.sha256("\0".join(words).encode()).hexdigest()[:24] if folder else None
    if kept and kept.exists():
        return kept.read_text()
    run = subprocess.run(["carma", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        sys.exit(f"carma {' '.join(words)}: {run.stderr.strip()}")
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(run.stdout)
    return run.stdout


def document(*arguments):
    """The same of a command that prints JSON."""
    return json.loads(carma(*arguments, "--json"))


def jobs(trace, server, settings, seed):
    """The jobs of a simulated trace, as rows of the table that `--jobs` writes."""
    printed = carma("simulate", trace, "--server", server, *ERRORS, *settings, "--seed", seed, "--jobs", "/dev/stdout", kept=False)
    rows = csv.DictReader(printed[printed.index("job,name,") :].splitlines())
    return [row for row in rows if row["carma"]]


def completion(job):
    """Seconds from submission to end."""
    return float(job["ended_s"]) - float(job["submitted_s"])


def makespan(rows):
    return max(float(job["ended_s"]) for job in rows) - min(float(job["submitted_s"]) for job in rows)


def percentile95(values):
    """The 95th percentile, between the two nearest values."""
    values = sorted(values)
    place = 0.95 * (len(values) - 1)
    low = int(place)
    return values[low] + (place - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def suite_traces():
    """The 13 traces, as (file, servers)."""
    published = [(f"{name}.csv", f"{gpus}xA100-40GB") for name, gpus in PUBLISHED.items()]
    return published + [(str(path), "4xA100-40GB") for path in sorted(SUITE.glob("*.csv"))]


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def percent(value):
    return f"{100 * value:.6f} %"


def number(value):
    return f"{value:.6f}"
