"""The evidence in the README, with figures from several pages."""

from statistics import mean

from .document import NOT_MADE
from .run import document, percent, table
from .simulator import VALIDATE
from .suite import standard


def evidence():
    rows = document(*VALIDATE)["rows"]
    error = percent(mean(abs(row["makespan_error"]) for row in rows))
    both = [f"{ours} ({theirs})" for ours, theirs in zip(standard().figures("carma"), standard().figures("magm"))]
    named = ", ".join(f"{name} {pair}" for name, pair in zip(("makespan", "mean completion time", "p95", "energy"), both, strict=True))
    shares = f"simulated on {len(standard().traces)} traces, shares of one job per GPU (MAGM in brackets): {named}"
    table(
        ["claim", "figure", "command; data"],
        [
            ["the simulator predicts measured runs", f"makespans of {len(rows)} runs of a 60-job trace: {error} off in the mean", NOT_MADE],
            ["the default policy is ahead of the published default, MAGM", shares, NOT_MADE],
        ],
    )


TABLES = {"evidence": evidence}
