"""The wheel, of a made-up tree of release files; and of the real one, if `make release` was run."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import runpy
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

HAS_VENV = importlib.util.find_spec("ensurepip") is not None
ROOT = Path(__file__).resolve().parents[2]
WHEEL = ROOT / "packaging/wheel"
FUNCTIONS = runpy.run_path(str(WHEEL))
PROGRAM = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
cat "$here/../lib/carma/libnvidia-ml.so.1"
"""


def pack(tree: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run([sys.executable, WHEEL, tree, folder], env=environment, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.iterdir()
    return wheel


class Environment:
    """A clean virtual environment with the wheel."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.bin = folder / "bin"
        self.folder = folder
        self.pip("install", "--no-index", wheel)

    def pip(self, *arguments: str | Path) -> None:
        subprocess.run([self.bin / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)

    def run(self, *command: str, **variables: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARMA", "LD_"))}
        environment.update(variables, PATH=f"{self.bin}:/usr/bin:/bin")
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=self.folder).stdout


class Wheel(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tree(self) -> Path:
        tree = self.folder / "carma-1.2.3-rc.4-x86_64-linux"
        files = {
            "bin/carma": PROGRAM,
            "lib/carma/libnvidia-ml.so.1": "the library\n",
            "share/man/man1/carma.1": ".TH carma\n",
            "share/bash-completion/completions/carma": "complete -F _carma carma\n",
            "share/doc/carma/LICENSE-MIT": "MIT\n",
            "share/doc/carma/LICENSE-APACHE": "Apache\n",
            "share/doc/carma/THIRD-PARTY-LICENCES": "theirs\n",
        }
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        return tree

    def test_versions_and_platforms_are_written_as_python_does(self) -> None:
        for ours, theirs in {"0.2.0": "0.2.0", "0.2.0-dev": "0.2.0.dev0", "1.2.3-rc.4": "1.2.3rc4", "2.0.0-beta1": "2.0.0b1"}.items():
            self.assertEqual(theirs, FUNCTIONS["python_version"](ours))
        with self.assertRaisesRegex(SystemExit, "'latest' is no version"):
            FUNCTIONS["python_version"]("latest")
        self.assertEqual("manylinux2014_x86_64", FUNCTIONS["platform"]("2.17", "x86_64"))
        self.assertEqual("manylinux_2_28_aarch64", FUNCTIONS["platform"]("2.28", "aarch64"))

    def test_every_file_is_recorded_with_its_digest(self) -> None:
        wheel = pack(self.tree(), self.folder / "out")
        self.assertEqual("carma_gpu-1.2.3rc4-py3-none-manylinux2014_x86_64.whl", wheel.name)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            self.assertEqual(len(names), len(set(names)))
            recorded = {}
            for line in archive.read("carma_gpu-1.2.3rc4.dist-info/RECORD").decode().splitlines():
                name, digest, size = line.rsplit(",", 2)
                recorded[name] = (digest, size)
            self.assertEqual(set(names), set(recorded))
            self.assertEqual(("", ""), recorded.pop("carma_gpu-1.2.3rc4.dist-info/RECORD"))
            for name, (digest, size) in recorded.items():
                content = archive.read(name)
                wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((f"sha256={wanted}", str(len(content))), (digest, size), name)
            self.assertEqual(1, sum(name.endswith("/LICENSE-MIT") for name in names), "licences are with the metadata alone")
            package = {name for name in names if name.startswith("carma/")}
        wanted = {path.relative_to(ROOT / "python").as_posix() for path in (ROOT / "python/carma").rglob("*.py")}
        self.assertEqual(wanted, package)

    def test_the_same_tree_gives_the_same_bytes(self) -> None:
        tree = self.tree()
        first = pack(tree, self.folder / "first").read_bytes()
        for file in tree.rglob("*"):
            os.utime(file, (1, 1))
        self.assertEqual(first, pack(tree, self.folder / "second").read_bytes())

    @unittest.skipUnless(HAS_VENV, "not installed: python3-venv")
    def test_an_environment_has_program_library_module_completions_and_pages(self) -> None:
        environment = Environment(self.folder / "environment", pack(self.tree(), self.folder / "out"))
        self.assertEqual("the library\n", environment.run("carma"))
        self.assertTrue((environment.folder / "share/man/man1/carma.1").exists())
        self.assertTrue((environment.folder / "share/bash-completion/completions/carma").exists())
        version = environment.run("python", "-c", "import carma.client, importlib.metadata as m; print(m.version('carma-gpu'))")
        self.assertEqual("1.2.3rc4\n", version)
        self.assertIn("usage: python -m carma.memory", environment.run("carma-memory", "--help"))
        environment.pip("uninstall", "--yes", "carma-gpu")
        left = [path for path in environment.folder.rglob("*carma*") if path.is_file()]
        self.assertEqual([], left)

    @unittest.skipUnless(HAS_VENV, "not installed: python3-venv")
    def test_the_real_release(self) -> None:
        target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
        trees = list(target.glob("release-files/carma-*-x86_64-linux"))
        if not trees:
            self.skipTest("no release: run `make release` first")
        environment = Environment(self.folder / "environment", pack(trees[0], self.folder / "out"))
        variables = {"CARMA_EMU": str(self.folder / "gpus"), "HOME": str(self.folder)}
        environment.run("carma", "emu", "up", "--gpus", "2xA100-40GB", **variables)
        try:
            self.assertEqual(2, environment.run("carma", "gpus", **variables).count("A100"))
        finally:
            environment.run("carma", "emu", "down", **variables)
        self.assertTrue(environment.run("man", "-w", "carma").startswith(str(environment.folder.resolve())))


if __name__ == "__main__":
    unittest.main()
