"""Tables of docs/simulator.md, and those of single traces: docs/mapper.md and docs/time-slices.md."""

import statistics
import tempfile
from math import exp, log
from pathlib import Path

from .run import ERRORS, carma, document, number, percent, suite_traces, table

RATIOS = ["makespan_ratio", "mean_jct_ratio", "p95_jct_ratio", "energy_ratio"]
HEAD = ["makespan", "mean JCT", "p95 JCT", "energy"]
VALIDATE = "validate --jobs philly60_jobs.csv --measured philly60_measured.csv --estimates estimates.csv".split()


def validation():
    """Errors over all policies."""
    rows = document(*VALIDATE)["rows"]

    def errors(key, of=None):
        return [abs(row[key]) for row in rows if of is None or row["screened"] == of]

    def line(name, key):
        return [name, percent(statistics.mean(errors(key))), percent(max(errors(key, True))), percent(max(errors(key, False)))]

    energy = [abs(row["energy_ratio_difference"]) for row in rows if row["energy_ratio_difference"] is not None]
    attempts = statistics.mean(errors("oom_difference"))
    table(
        ["", "mean error", "worst, with a utilisation screen", "worst, without"],
        [
            line("makespan", "makespan_error"),
            line("mean completion time", "mean_jct_error"),
            ["out-of-memory attempts", f"{attempts:.6f} attempts", "", ""],
            ["energy over exclusive's", f"within {max(energy):.6f}", "", ""],
        ],
    )


def cache():
    """Each policy without and with the cache that processes can free."""

    def line(before, after):
        attempts = [run["oom_attempts"] for run in (after["measured"], before["simulated"], after["simulated"])]
        times = [run["mean_jct_s"] for run in (after["measured"], before["simulated"], after["simulated"])]
        return [after["policy"], *map(number, attempts + times)]

    both = zip(document(*VALIDATE, "--cached", "0")["rows"], document(*VALIDATE)["rows"])
    head = ["", "attempts: measured", "before", "now", "mean completion, s: measured", "before", "now"]
    table(head, [line(*rows) for rows in both])


def crowded():
    """Run times and waits of the runs in which many jobs share a GPU."""

    def waits(run):
        return run["mean_jct_s"] - run["mean_exec_s"]

    rows = []
    for row in document(*VALIDATE)["rows"]:
        if row["policy"].endswith("no thresholds"):
            measured, simulated = row["measured"], row["simulated"]
            times = [measured["mean_exec_s"], simulated["mean_exec_s"]]
            error = f"{100 * row['execution_error']:+.6f} %"
            rows.append([row["policy"], *map(number, times), error, *map(number, (waits(measured), waits(simulated)))])
    table(["", "mean execution, s: measured", "simulated", "error", "mean wait, s: measured", "simulated"], rows)


def calibration():
    """Errors of pairs."""
    names = {
        "on what it was fitted to": "fitted",
        "with a tenth of the pairs left out": "a tenth of the pairs left out at a time",
        "with each workload left out": "all pairs of one workload left out",
        "with each family left out": "all pairs of one model family left out",
    }
    printed = carma(*"calibrate --solo solo_a100_40gb.csv --pairs pairs_a100_40gb.csv --crowds crowds_a100_40gb.csv".split())
    parts = [line.strip().rpartition("  ") for line in printed.splitlines()]
    table(["mean error of a job's time in a pair", ""], [[names[name.strip()], figure] for name, _, figure in parts if name.strip() in names])


def budgets():
    """Budgets and limits of power on the Philly trace."""
    sweep("budget", range(600, 1001, 100), "budget of the server, W", ("none",))


def caps():
    sweep("cap", range(150, 301, 50), "limit of each GPU, W", ())


def sweep(key, values, name, last):
    policies = [f"carma/power.{key}={value}" for value in values] + ["carma"] * len(last)
    options = ["--server", "3xA100-40GB", *ERRORS, "--seeds", 20, "--policies", ",".join(policies)]
    rows = {row["policy"]: row for row in document("compare", "philly60_jobs.csv", *options)["rows"]}
    figures = {"makespan": "makespan_ratio", "mean JCT": "mean_jct_ratio", "energy": "energy_ratio"}
    head = [name, *map(str, values), *last]
    table(head, [[figure, *(number(rows[policy][ratio]) for policy in policies)] for figure, ratio in figures.items()])


def geometric(rows, key):
    return number(exp(statistics.mean(log(row[key]) for row in rows)))


def compared(traces, policies, *options):
    """Rows of each policy, over the traces."""
    found = {policy: [] for policy in policies}
    for trace, server in traces:
        settings = ["--server", server, *ERRORS, "--seeds", 20, "--policies", ",".join(policies), *options]
        for row in document("compare", trace, *settings)["rows"]:
            found.get(row["policy"], []).append(row)
    return found


def unseen():
    """Traces on which nothing was chosen."""
    names = {
        "**carma**": "carma",
        "`aim = throughput`": "carma/aim=throughput",
        "`aim = response`": "carma/aim=response",
        "MAGM": "magm",
        "OR-MAGM as published": "or-magm/paper",
    }
    with tempfile.TemporaryDirectory() as folder:
        traces = []
        for place, (mix, jobs) in enumerate([("65/27/8", 90), ("0/83/17", 60), ("40/40/20", 60)]):
            for seed in range(31, 37):
                file = Path(folder) / f"{place}-{seed}.csv"
                carma("trace", "generate", "--mix", mix, "--jobs", jobs, "--seed", seed, "-o", file)
                traces.append((str(file), "4xA100-40GB"))
        found = compared(traces, list(names.values()))
    rest = lambda rows: [number(statistics.mean(row[key] for row in rows)) for key in ("oom_attempts", "mean_slowdown")]
    rows = [[name, *(geometric(found[policy], key) for key in RATIOS), *rest(found[policy])] for name, policy in names.items()]
    table(["", *HEAD, "out of memory", "mean slowdown"], rows)


def moves():
    """docs/time-slices.md: jobs that can be moved."""
    names = {
        "corrections (`correction.slowdown=1.2`)": "carma/correction.slowdown=1.2",
        "time slices of 1 h": "carma/time_slices.length=3600",
        "time slices of 30 min": "carma/time_slices.length=1800",
    }
    traces = suite_traces()
    rows = [("0 %", "the default", compared(traces, ["carma"])["carma"])]
    for share in (0.25, 1):
        found = compared(traces, list(names.values()), "--checkpoint", share, "--progress", 1)
        for name, policy in names.items():
            rows.append((f"{100 * share:.0f} %", name if share < 1 else name.partition(" (")[0], found[policy]))
    table(["jobs that can checkpoint", "policy", *HEAD], [[share, name, *(geometric(found, key) for key in RATIOS)] for share, name, found in rows])


TABLES = {
    "validation": validation,
    "cache": cache,
    "crowded": crowded,
    "calibration": calibration,
    "budgets": budgets,
    "caps": caps,
    "unseen": unseen,
    "moves": moves,
}
