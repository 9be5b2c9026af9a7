"""A manager on emulated GPUs, for tests that submit jobs."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
#: The program that `cargo build` makes, or the one that CARMA_PROGRAM names.
PROGRAM = Path(os.environ.get("CARMA_PROGRAM") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target", "debug/carma"))


class EmulatedTest(unittest.TestCase):
    """Tests on two emulated GPUs, with a manager and a home folder of their own."""

    GPUS = "2xA100-40GB"
    SPEED = 20

    @classmethod
    def setUpClass(cls) -> None:
        if not PROGRAM.exists():
            raise unittest.SkipTest(f"no {PROGRAM}: build it with `cargo build`, or name another in CARMA_PROGRAM")
        cls.folder = Path(cls.enter(tempfile.TemporaryDirectory()))
        variables = {
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "HOME": str(cls.folder),
            "XDG_STATE_HOME": str(cls.folder / "xdg"),
            "XDG_CONFIG_HOME": str(cls.folder / "config"),
            "CARMA_EMU": str(cls.folder / "gpus"),
            "CARMA_SOCKET": str(cls.folder / "state/carma.sock"),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH")))),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        cls.enter(mock.patch.dict(os.environ, variables))
        cls.carma("emu", "up", "--gpus", cls.GPUS, "--speed", str(cls.SPEED))
        cls.addClassCleanup(cls.carma, "emu", "down")
        os.environ.update(word.split("=", 1) for word in shlex.split(cls.carma("emu", "env")) if "=" in word)
        cls.carma("up", "--detach", "--state", str(cls.folder / "state"))
        cls.addClassCleanup(cls.carma, "down")

    @classmethod
    def enter(cls, context: contextlib.AbstractContextManager) -> object:
        """Enters a context for all tests of the class; Python 3.11 has `enterClassContext`."""
        entered = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return entered

    @staticmethod
    def carma(*arguments: str) -> str:
        run = subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, timeout=120, check=False)
        if run.returncode:
            raise AssertionError(f"carma {' '.join(arguments)}: {run.stderr}")
        return run.stdout
