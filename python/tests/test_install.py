"""Installing the package from a checkout that belongs to another user."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


class Install(unittest.TestCase):
    def hook(self, source: Path, call: str) -> str:
        """The answer of a hook of the build, in a process of its own, as pip calls it."""
        run = [sys.executable, "-B", "-c", f"import build_backend; print(build_backend.{call})"]
        done = subprocess.run(run, cwd=source, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(source)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_nothing_is_written_beside_the_sources(self) -> None:
        if importlib.util.find_spec("setuptools") is None:
            self.skipTest("this interpreter has no setuptools")
        with tempfile.TemporaryDirectory() as scratch:
            source, out = Path(scratch) / "python", Path(scratch) / "out"
            shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "tests"))
            out.mkdir()
            before = sorted(source.rglob("*"))
            for folder, _, files in os.walk(source):
                for name in [".", *files]:
                    path = Path(folder) / name
                    path.chmod(path.stat().st_mode & ~0o222)
            # Root may write anywhere, so what was written is looked at too.
            written = [self.hook(source, hook) for hook in ("get_requires_for_build_wheel()", f"build_sdist({str(out)!r})")]
            self.assertEqual(sorted(source.rglob("*")), before)
            with tarfile.open(out / written[-1].split()[-1]) as archive:
                names = {name.split("/", 1)[-1] for name in archive.getnames()}
            self.assertLessEqual({"PKG-INFO", "carma/client.py", "carma/memory/__main__.py"}, names)
            for folder, _, _ in os.walk(source):
                os.chmod(folder, 0o755)


if __name__ == "__main__":
    unittest.main()
