"""Tables of the standard comparison: docs/mapper.md and docs/gpus.md. Ratios to exclusive, as geometric means over the traces."""

from functools import cache
from math import exp, log
from statistics import mean

from .run import document, number, table

MAPPERS = ["rr", "ff", "bf", "magm", "lug"]
RULES = ["", "/paper", "/aegis"]
KNOWN = [f"{mapper}{rules}" for mapper in MAPPERS for rules in RULES] + ["horus", "lucid"]
UNKNOWN = [f"or-{mapper}{rules}" for mapper in MAPPERS for rules in RULES]
OWN = ["carma", "carma/aim=throughput", "carma/aim=response"]
BASE = "as submitted"
SCENARIOS = [BASE, "half load", "double load", "2 GPUs", "4 GPUs", "8 GPUs", "memory error 0.3", "MPS"]
FIGURES = ["makespan", "mean_jct", "p95_jct", "energy"]
HEAD = ["makespan", "mean JCT", "p95 JCT", "energy"]
#: Published policies with more out-of-memory attempts per run do not count.
MOST_OOM = 0.5


class Scenario:
    """All policies in one scenario of the suite."""

    def __init__(self, printed, traces):
        self.traces = traces
        self.policies = {policy["name"]: policy["runs"] for policy in printed["policies"]}

    def on_trace(self, policy, figure, place):
        of = lambda name: mean(run[figure] for run in self.policies[name][place])
        return of(policy) / of("exclusive")

    def figure(self, policy, figure):
        return exp(mean(log(self.on_trace(policy, figure, place)) for place in range(len(self.traces))))

    def figures(self, policy):
        return [number(self.figure(policy, figure)) for figure in FIGURES]

    def mean(self, policy, field):
        return mean(mean(run[field] for run in runs) for runs in self.policies[policy])

    def slowdown(self, policy):
        return f"{number(self.mean(policy, 'mean_slowdown'))} / {number(self.mean(policy, 'worst_slowdown'))}"

    def wins(self, figure):
        better = [self.on_trace("carma", figure, place) < self.on_trace("magm", figure, place) for place in range(len(self.traces))]
        return str(sum(better))

    def best_published(self, figure):
        counted = [policy for policy in KNOWN if self.mean(policy, "oom_attempts") <= MOST_OOM]
        best = min(counted, key=lambda policy: self.figure(policy, figure))
        return f"{number(self.figure(best, figure))} `{best}`"


@cache
def scenario(name, policies, *options):
    printed = document("compare", "--suite", ".", "--scenarios", name, "--policies", ",".join(policies), *options)
    return Scenario(printed["scenarios"][0], printed["traces"])


def standard(name=BASE):
    """The scenario with all policies that tables need."""
    return scenario(name, (*OWN, *KNOWN, *UNKNOWN) if name == BASE else ("carma", *KNOWN))


def aims():
    names = {"`balanced` (default)": "carma", "`throughput`": OWN[1], "`response`": OWN[2], "MAGM, for comparison": "magm"}
    base = standard()
    rows = [[name, *base.figures(policy), base.slowdown(policy)] for name, policy in names.items()]
    table(["aim", *HEAD, "mean / worst slowdown"], rows)


def scenarios():
    rows = []
    for name in SCENARIOS:
        of = standard(name)
        both = [" / ".join(pair) for pair in zip(of.figures("carma"), of.figures("magm"))]
        oom = " / ".join(number(of.mean(policy, "oom_attempts")) for policy in ("carma", "magm"))
        rows.append([name, *both, " ".join(map(of.wins, FIGURES)), oom])
    table(["carma / MAGM", *HEAD, "wins against MAGM", "out of memory per run"], rows)


def best_published():
    names = [name for name in SCENARIOS if name not in ("memory error 0.3", "MPS")]
    table(["best published", *HEAD], [[name, *map(standard(name).best_published, FIGURES)] for name in names])


def unknown_memory():
    base = standard()
    rows = [[f"`{policy}`", *base.figures(policy), number(base.mean(policy, "oom_attempts")), base.slowdown(policy)] for policy in UNKNOWN]
    table(["", *HEAD, "out of memory per run", "mean / worst slowdown"], rows)


def each_trace():
    base = standard()
    both = lambda place, figure: " / ".join(number(base.on_trace(policy, figure, place)) for policy in ("carma", "magm"))
    table(["", *HEAD], [[trace, *(both(place, figure) for figure in FIGURES)] for place, trace in enumerate(base.traces)])


def claims():
    """The prototype's own traces: changes of sums over the seeds."""
    names = {"or-magm/paper": "its own policy, OR-MAGM", "magm/paper": "the same with known memory", "carma": "`carma`"}
    base, rows = standard(), []
    for trace in ("mix90", "heavy60"):
        for policy, name in names.items():
            place = base.traces.index(trace)
            changes = [100 * (base.on_trace(policy, figure, place) - 1) for figure in ("makespan", "energy", "smact", "smocc", "memory_mib")]
            rows.append([trace, name, *(f"{change:+.6f} %" for change in changes)])
    table(["", "", "makespan", "energy", "SMACT", "SMOCC", "memory"], rows)


def best_order():
    names = {"makespan": "makespan", "mean JCT": "mean-jct", "p95 JCT": "p95-jct", "the mean of the three": "all"}
    of = scenario(BASE, ("carma",), "--best", ",".join(names.values()))
    policies = {**{name: f"best order: {aim}" for name, aim in names.items()}, "the default, for comparison": "carma"}
    rows = [[name, *of.figures(policy), of.slowdown(policy)] for name, policy in policies.items()]
    table(["best order for", *HEAD, "mean / worst slowdown"], rows)


def eight_gpus():
    settings = ["forecast.delay=1.6/queue.critical=1.1/queue.stretch=0.7", "forecast.delay=1", "forecast.gain=0", "queue.drain=0"]
    names = {"the default": "carma", **{f"`{setting}`": f"carma/{setting}" for setting in settings}}
    both = [scenario(name, tuple(names.values())) for name in ("8 GPUs", BASE)]
    table(["", "8 GPUs", BASE], [[name, *(" ".join(of.figures(policy)) for of in both)] for name, policy in names.items()])


def ideas():
    changes = {
        "no GPUs kept by prediction for the longest job": "queue.drain=0",
        "none for a head that has waited for long": "queue.stretch=0",
        "no rule for the longest job": "queue.critical=0/queue.drain=0",
        "no memory given back": "admission.trim_after=0",
        "no memory reserved": "admission.reservations=false",
        "in order of submission": "queue.order=submission",
        "no job passes the head": "queue.backfill=0",
        "GPUs kept for the head at once": "queue.reserve_after=0",
        "no limit on delay": "forecast.delay=1000",
        "sharing must add a quarter of a job": "forecast.gain=0.25",
        "predictions choose the GPU and refuse none": "forecast.slowdown=100/forecast.gain=-1/forecast.delay=1000",
        "the gate opens after 30 s": "gate.confirmed=30",
    }
    names = {"the default": "carma", **{f"{name}, `{setting}`": f"carma/{setting}" for name, setting in changes.items()}}
    names["the rules of preset `standard`, `carma/standard`"] = "carma/standard"
    of = scenario(BASE, tuple(names.values()))
    table(["", *HEAD, "mean slowdown"], [[name, *of.figures(p), number(of.mean(p, "mean_slowdown"))] for name, p in names.items()])


def limits():
    """docs/gpus.md: with and without memory limits of the driver."""
    margins, borrowers = "/admission.margin=0/admission.doubt_margin=0", "/enforce.stop_borrowers=false"
    rows = [
        ("`carma`", "off", "carma"),
        ("`carma`", "soft", "carma/enforce.memory=soft"),
        ("`carma`", "hard", "carma/enforce.memory=hard"),
        ("`carma` without margins", "off", f"carma{margins}"),
        ("`carma` without margins", "soft", f"carma{margins}/enforce.memory=soft"),
        ("`carma` without margins", "hard", f"carma{margins}/enforce.memory=hard"),
        ("`or-carma`: nothing is known", "off", "or-carma"),
        ("`or-carma`: nothing is known", "soft or hard", "or-carma/enforce.memory=soft"),
        ("`or-carma`: nothing is known", "the same, borrowers are left to the driver", f"or-carma/enforce.memory=soft{borrowers}"),
        ("`magm/paper`: no reservations", "off", "magm/paper"),
        ("`magm/paper`: no reservations", "soft", "magm/paper/enforce.memory=soft"),
        ("`magm/paper`: no reservations", "hard", "magm/paper/enforce.memory=hard"),
    ]
    of = scenario("memory error 0.3", tuple(policy for _, _, policy in rows))
    rest = lambda policy: [number(of.mean(policy, field)) for field in ("oom_attempts", "oom_victims")]
    head = ["policy", "limits", *HEAD, "out of memory", "victims"]
    table(head, [[name, limit, *of.figures(policy), *rest(policy)] for name, limit, policy in rows])


TABLES = {
    "aims": aims,
    "scenarios": scenarios,
    "best-published": best_published,
    "unknown-memory": unknown_memory,
    "each-trace": each_trace,
    "claims": claims,
    "best-order": best_order,
    "eight-gpus": eight_gpus,
    "ideas": ideas,
    "limits": limits,
}
