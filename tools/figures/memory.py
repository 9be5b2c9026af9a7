"""Tables of docs/estimation.md."""

import csv
import json
import statistics
import subprocess
import sys

from .run import percent, table


def static_estimates():
    """The rows of the static estimator. Those of the dry run need PyTorch (`make test-torch`)."""
    sets = [
        ("real models, 2025-09", "real_models", [], None),
        ("TIMM, `--sample 200 --seed 7`", "timm", ["--sample", "200", "--seed", "7"], None),
        ("random MLPs", "mlp", [], "1gb"),
        ("random CNNs", "cnn_random", [], "8gb"),
        ("random Transformers", "transformer_random", [], "8gb"),
        ("xMem's runs", "xmem", [], None),
        ("fully connected, MNIST", "fc_mnist", [], None),
    ]
    rows = []
    for name, file, options, classes in sets:
        found = evaluated(name, f"memory_{file}.csv", "static", *options)
        if not found:
            continue
        shares = ("median_ape", "mape", "within_10pct", "under_share_at_bound", "mean_over_at_bound")
        right = f"{found[f'class_accuracy_{classes}']:.6f} ({classes[0]} GB)" if classes else ""
        rows.append([name, "static", f"{found['rows']:,}", *(percent(found[share]) for share in shares), right])
    head = ["set", "estimator", "rows", "median", "mean", "within 10 %", "above the 95 % bound", "mean over at the bound", "right class"]
    table(head, rows)


def evaluated(name, file, estimator, *options):
    """What `carma estimator evaluate` says; nothing if rows were left out."""
    command = ["carma", "estimator", "evaluate", "--data", file, "--estimator", estimator, "--json", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode or "left out" in run.stderr:
        # Some rows are described by a Python with timm and transformers: CARMA_PYTHON.
        print(f"{name}: {run.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return json.loads(run.stdout)


def published_errors():
    """Errors of the published estimators on xMem's runs, from the answers in that file."""
    with open("memory_xmem.csv") as file:
        runs = [row for row in csv.DictReader(file) if row["ran_out"] != "true"]
    rows = []
    for name in ("xMem", "SchedTune", "DNNMem", "LLMem"):
        answered = [row for row in runs if row[f"{name.lower()}_mib"]]
        errors = [(row["family"], abs(float(row[f"{name.lower()}_mib"]) / float(row["measured_mib"]) - 1)) for row in answered]
        medians = [statistics.median(error for family, error in errors if family.startswith(kind)) for kind in ("", "CNN", "Transformer")]
        rows.append([name, str(len(answered)), *map(percent, medians)])
    table(["published estimator", "rows", "all", "CNNs", "Transformers"], rows)


def learned():
    """Accuracy of the learned estimators in cross-validation."""
    names = {"GPUMemNet's MLP ensemble": "gpumemnet-mlp", "Transformer ensemble": "gpumemnet-transformer"}
    rows = []
    for name, estimator in names.items():
        sets = [("memory_mlp.csv", "class_accuracy_1gb"), ("memory_cnn_random.csv", "class_accuracy_8gb")]
        rows.append([name, *(f"{evaluated(name, file, estimator)[accuracy]:.6f}" for file, accuracy in sets)])
    table(["estimator", "MLP set (1 GB classes)", "CNN set (8 GB)"], rows)


TABLES = {"static-estimates": static_estimates, "published-errors": published_errors, "learned": learned}
