"""The reference of metrics, from a manager on emulated GPUs that ran a job."""

import os
import re
import subprocess
import tempfile


def exposition(program):
    """What `carma metrics` prints."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CARMA_EMU": f"{folder}/gpus", "CARMA_SOCKET": f"{folder}/state/carma.sock", "HOME": folder}

        def carma(*arguments):
            return subprocess.run([program, *arguments], env=environment, check=True, capture_output=True, text=True).stdout

        carma("emu", "up", "--gpus", "1xA100-40GB", "--speed", "60")
        try:
            carma("up", "--detach", "--state", f"{folder}/state")
            try:
                carma("submit", "--wait", "--mem", "8GiB", "--", program, "emu", "train", "--workload", "resnet50_imagenet_bs64", "--seconds", "60")
                return carma("metrics")
            finally:
                carma("down")
        finally:
            carma("emu", "down")


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
