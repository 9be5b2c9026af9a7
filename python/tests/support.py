"""What the tests share: traces of small pieces of code, and scripts run as a user would."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from carma.memory.phases import TraceComplete
from carma.memory.session import Session

PACKAGE = Path(__file__).resolve().parents[1]
IS_TORCH_2 = int(torch.__version__.split(".")[0]) >= 2


def torch2(*packages: str) -> Callable[[Any], Any]:
    """Marks a test of the current stack; it is skipped where that is not installed. `make test` has Debian's PyTorch, `make test-torch` the current stack."""
    if not IS_TORCH_2:
        return unittest.skip(f"needs PyTorch 2, found {torch.__version__}")
    return installed(*packages)


def installed(*packages: str) -> Callable[[Any], Any]:
    """Marks a test of these packages, in any version."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return unittest.skipIf(bool(missing), f"not installed: {', '.join(missing)}")


def traced(work: Callable[[], Any], iterations: int = 1, devices: int = 1) -> Session:
    """The session of a piece of work; what it returns is freed inside."""
    session = Session(iterations, devices)
    with contextlib.suppress(TraceComplete), session:
        work()
    return session


def allocations(lines: Iterable[str], kinds: str = "wbgoiat", device: int = 0) -> list[int]:
    """Requested sizes of these kinds, in order."""
    found = []
    for line in lines:
        parts = line.split()
        if parts[0] == "+" and parts[3] in kinds and (int(parts[4]) if len(parts) > 4 else 0) == device:
            found.append(int(parts[2]))
    return found


def live_bytes(lines: Iterable[str], device: int = 0) -> tuple[int, int]:
    """Bytes alive at the end and at the peak; also checks that ids are used once and freed once."""
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    current = peak = 0
    for line in lines:
        parts = line.split()
        if parts[0] == "+":
            assert parts[1] not in seen, f"id {parts[1]} used twice"
            seen.add(parts[1])
            if (int(parts[4]) if len(parts) > 4 else 0) == device:
                sizes[parts[1]] = int(parts[2])
                current += int(parts[2])
                peak = max(peak, current)
        elif parts[0] == "-":
            assert parts[1] in seen, f"id {parts[1]} freed but never allocated"
            current -= sizes.pop(parts[1], 0)
    return current, peak


def between(lines: list[str], start: str, end: str) -> list[str]:
    first = lines.index(start)
    return lines[first + 1 : lines.index(end, first)]


@dataclass
class Result:
    code: int
    stdout: str
    stderr: str
    trace: list[str]
    folder: Path
    files: list[str]


class ScriptTest(unittest.TestCase):
    """Runs scripts with the command line in a folder of their own."""

    def run_script(
        self, source: str, *arguments: str, options: Iterable[str] = (), environment: dict[str, str] | None = None,
        launcher: Iterable[str] = (), others: dict[str, str] | None = None,
    ) -> Result:
        """Runs `train.py` with its arguments, behind the words of a launcher; `others` are further files beside it."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name)
        for name, text in {"train.py": source, **(others or {})}.items():
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text(textwrap.dedent(text))
        outcome = tempfile.TemporaryDirectory()
        self.addCleanup(outcome.cleanup)
        output = Path(outcome.name) / "run.trace"
        script = [*launcher, "train.py", *arguments]
        trace = [sys.executable, "-W", "ignore", "-m", "carma.memory", "trace", "--json-errors"]
        command = [*trace, *options, "-o", str(output), "--", *script]
        path_of_modules = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
        run = subprocess.run(
            command, cwd=path, capture_output=True, text=True, timeout=300,
            env={**os.environ, "PYTHONPATH": path_of_modules, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
        )
        trace = output.read_text().splitlines() if output.exists() else []
        files = sorted(str(file.relative_to(path)) for file in path.rglob("*"))
        return Result(run.returncode, run.stdout, run.stderr, trace, path, files)
