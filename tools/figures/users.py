"""A light user beside a heavy one: docs/queue.md. And single jobs of one trace: docs/mapper.md."""

import csv
import tempfile
from pathlib import Path
from statistics import mean

from .run import SUITE, carma, completion, jobs, makespan, number, percentile95, table

SEEDS = range(100, 140)
RULES = {"no fair share": (False, 0), "`fair_share_reserve = 0`": (True, 0), "`fair_share_reserve = 14400`": (True, 14400)}


class Sums:
    """Sums over the seeds, under one rule."""

    def __init__(self):
        self.alone, self.beside, self.heavy, self.makespan = [0, 0], [0, 0], 0, 0

    def add(self, folder, seed, rule):
        settings = ["--config", folder / "rule.toml"]
        fair, reserve = RULES[rule]
        (folder / "rule.toml").write_text(f"preset = \"carma\"\n[queue]\nfair_share = {str(fair).lower()}\nfair_share_reserve = {reserve}\n")
        light = [completion(job) for job in jobs(folder / "light.csv", "2xA100-40GB", settings, seed)]
        both = jobs(folder / "both.csv", "4xA100-40GB", settings, seed)
        of = lambda user: [completion(job) for job in both if job["name"].startswith(user)]
        for sums, times in ((self.alone, light), (self.beside, of("light"))):
            sums[0] += mean(times)
            sums[1] += percentile95(times)
        self.heavy += mean(of("heavy"))
        self.makespan += makespan(both)

    def ratios(self):
        return " / ".join(number(beside / alone) for beside, alone in zip(self.beside, self.alone))


def fairness():
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for gap in (600, 1200, 2400, 4800):
            sums = {rule: Sums() for rule in RULES}
            for seed in SEEDS:
                traces(Path(name), gap, seed)
                for rule, of in sums.items():
                    of.add(Path(name), seed, rule)
            _, without, kept = sums.values()
            price = [100 * (kept.heavy / without.heavy - 1), 100 * (kept.makespan / without.makespan - 1)]
            rows.append([f"{gap} s", *(of.ratios() for of in sums.values()), *(f"{share:+.6f} %" for share in price)])
    table(["mean gap of the light user", *RULES, "heavy user's mean", "makespan"], rows)


def traces(folder, gap, seed):
    """light.csv, and both.csv with the jobs of the heavy user too."""
    rows = []
    for user, count, mean_gap, draw in (("light", 20, gap, seed), ("heavy", 200, gap // 10, seed + 1000)):
        file = folder / f"{user}.csv"
        carma("trace", "generate", "--mix", "65/27/8", "--jobs", count, "--mean-gap", mean_gap, "--seed", draw, "-o", file, kept=False)
        read = csv.DictReader(line for line in file.read_text().splitlines() if not line.startswith("#"))
        rows += [{**row, "user": user, "name": f"{user}{row['name']}"} for row in read]
        write(file, rows)
    write(folder / "both.csv", sorted(rows, key=lambda row: float(row["submit_time_s"])))


def write(file, rows):
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


#: Jobs of heavy21 that decide its 95th percentile, by number.
LONGEST, TWO_GPUS, LARGE = (42, 24), (15, 49), (39, 14, 17)


def heavy21():
    runs = {policy: [jobs(SUITE / "heavy21.csv", "8xA100-40GB", ["--policy", policy], seed) for seed in range(20)] for policy in ("carma", "lug")}

    def done(policy, which):
        means = [mean(completion(run[job - 1]) for run in runs[policy]) for job in which]
        *first, last = [f"{value:,.6f}" for value in means]
        return f"{', '.join(first)} and {last}"

    rows = [
        ["makespan, s", *(number(mean(map(makespan, of))) for of in runs.values())],
        ["completion of the two longest jobs (14,449 s alone, 33 GB), s", *(done(policy, LONGEST) for policy in runs)],
        ["of two jobs on 2 GPUs (3,981 s alone, 28 GB on each), s", *(done(policy, TWO_GPUS) for policy in runs)],
        ["of three jobs of 6,582 s alone with 30 GB, s", *(done(policy, LARGE) for policy in runs)],
        ["p95, s", *(number(mean(percentile95(map(completion, run)) for run in of)) for of in runs.values())],
    ]
    table(["heavy21 with 8 GPUs", "default", "`lug`"], rows)


TABLES = {"fairness": fairness, "heavy21": heavy21}
