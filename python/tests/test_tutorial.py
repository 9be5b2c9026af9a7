"""The tutorial and the pages that explain, command by command, as a plain user with an empty home folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.emulated import PROGRAM, ROOT

#: Debian's user nobody, for whom tests of root act: root's manager would be the machine's.
NOBODY = 65534


@unittest.skipUnless(PROGRAM.exists(), f"no {PROGRAM}: build it with `cargo build`")
class Pages(unittest.TestCase):
    def test_tutorial(self) -> None:
        self.run_page("tutorial")

    def test_how_carma_decides(self) -> None:
        self.run_page("how-carma-decides")

    def test_how_carma_estimates(self) -> None:
        self.run_page("how-carma-estimates")

    def run_page(self, name: str) -> None:
        """Every command prints what the page says."""
        home = Path(self.enter(tempfile.TemporaryDirectory()))
        # Copies, as `make install` puts them: another user may not reach this checkout.
        program, library = home / "bin/carma", home / "lib/carma/libnvidia-ml.so.1"
        runner, page = home / "run-blocks", home / f"{name}.md"
        libraries = [PROGRAM.parent / "deps/libcarma_emu.so", PROGRAM.parent.parent / "lib/carma/libnvidia-ml.so.1"]
        originals = {program: PROGRAM, library: next(path for path in libraries if path.exists()),
                     runner: ROOT / "tools/run-blocks", page: ROOT / f"docs/{name}.md"}
        for copy, original in originals.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, copy)
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if user:
            os.chown(home, NOBODY, NOBODY)
        variables = {"HOME": str(home), "CARMA_EMU": str(home / "gpus"), "PATH": f"{program.parent}:/usr/bin:/bin"}
        try:
            run = subprocess.run(
                [runner, page], cwd=home, env=variables, capture_output=True, text=True, timeout=900, check=False, **user,
            )
        finally:
            # Where a command failed before the page cleans up.
            for command in (["down"], ["emu", "down"]):
                subprocess.run([program, *command], env=variables, capture_output=True, check=False, **user)
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)

    def enter(self, context: tempfile.TemporaryDirectory) -> str:
        self.addCleanup(context.cleanup)
        return context.name
