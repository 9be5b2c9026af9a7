"""The tools around a release, on made-up sources and files."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
CUT = runpy.run_path(str(ROOT / "tools/cut-release"))
CHANGELOG = runpy.run_path(str(PACKAGING / "changelog"))
SBOM = runpy.run_path(str(PACKAGING / "sbom"))


class Scratch(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Changelog(unittest.TestCase):
    TEXT = "# Changelog\n\n## 0.10.0 (not released yet)\n\n### Added\n- b\n\n## 0.1.0 (2026-01-02)\n- a\n"

    def test_a_section_ends_at_the_next(self) -> None:
        self.assertEqual("### Added\n- b\n", CHANGELOG["section"](self.TEXT, "0.10.0"))
        self.assertEqual("- a\n", CHANGELOG["section"](self.TEXT, "0.1.0"))
        with self.assertRaisesRegex(SystemExit, "no section of 0.1$"):
            CHANGELOG["section"](self.TEXT, "0.1")

    def test_the_sources_have_a_section_of_their_version(self) -> None:
        version = CHANGELOG["version"]((ROOT / "Cargo.toml").read_text())
        self.assertTrue(CHANGELOG["section"]((ROOT / "CHANGELOG.md").read_text(), version.removesuffix("-dev")))


class Cut(Scratch):
    def sources(self) -> Path:
        """The files with a version, in a repository of their own."""
        root = self.folder / "sources"
        for name in ("Cargo.toml", "Cargo.lock", "CHANGELOG.md", "CITATION.cff", "python/pyproject.toml", "packaging/releases.toml"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        version = CHANGELOG["version"]((root / "Cargo.toml").read_text())
        if not version.endswith("-dev"):
            # At the commit of a release itself.
            CUT["set_version"](root, f"{version}-dev")
        self.git(root, "init", "--quiet", "--initial-branch=main")
        for key, value in {"user.name": "A", "user.email": "a@b.invalid"}.items():
            self.git(root, "config", key, value)
        self.git(root, "add", ".")
        self.git(root, "commit", "--quiet", "--message", "Begin")
        return root

    def git(self, root: Path, *arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout

    def test_a_release_and_the_beginning_of_the_next(self) -> None:
        root = self.sources()
        version = CHANGELOG["version"]((root / "Cargo.toml").read_text()).removesuffix("-dev")
        CUT["release"](root, version, "9.0.0", "2027-01-02")
        subjects = self.git(root, "log", "--format=%s").splitlines()
        self.assertEqual(["Begin 9.0.0", f"Release {version}", "Begin"], subjects)
        commit = self.git(root, "rev-parse", f"v{version}^{{commit}}").strip()
        self.assertEqual(self.git(root, "rev-parse", "HEAD~1").strip(), commit)
        self.assertIn(f'"{version}" = "{commit}"', (root / "packaging/releases.toml").read_text())
        message = self.git(root, "tag", "--list", "--format=%(contents)", f"v{version}")
        self.assertIn("### Added", message)

        def shown(name: str) -> str:
            return self.git(root, "show", f"v{version}:{name}")

        self.assertIn(f'version = "{version}"', shown("Cargo.toml"))
        self.assertIn(f"## {version} (2027-01-02)", shown("CHANGELOG.md"))
        self.assertIn(f"version: {version}\ndate-released: 2027-01-02\n", shown("CITATION.cff"))
        self.assertIn(f'version = "{version}"', shown("python/pyproject.toml"))
        self.assertNotIn("-dev", "".join(re.findall(r'name = "carma[\w-]*"\nversion = "[^"]*"', shown("Cargo.lock"))))
        self.assertIn('version = "9.0.0-dev"', (root / "Cargo.toml").read_text())
        self.assertIn(f"## 9.0.0 (not released yet)\n\n## {version} (2027-01-02)", (root / "CHANGELOG.md").read_text())

    def test_nothing_changes_where_something_is_wrong(self) -> None:
        root = self.sources()
        version = CHANGELOG["version"]((root / "Cargo.toml").read_text()).removesuffix("-dev")
        with self.assertRaisesRegex(SystemExit, "is released from 8.8.8-dev"):
            CUT["release"](root, "8.8.8", "9.0.0", "2027-01-02")
        (root / "CITATION.cff").write_text("changed")
        with self.assertRaisesRegex(SystemExit, "not committed"):
            CUT["release"](root, version, "9.0.0", "2027-01-02")
        self.git(root, "checkout", "--quiet", ".")
        self.git(root, "tag", f"v{version}")
        with self.assertRaisesRegex(SystemExit, f"the tag v{version} exists"):
            CUT["release"](root, version, "9.0.0", "2027-01-02")
        self.assertEqual("", self.git(root, "status", "--porcelain"))


class Bill(unittest.TestCase):
    def test_what_is_linked_is_listed_with_its_checksum(self) -> None:
        def package(name: str, licence: str | None) -> dict:
            return {"id": f"{name}#1", "name": name, "version": "1.0.0", "license": licence}

        metadata = {
            "packages": [package("carma", "MIT"), package("used", "MIT/Apache-2.0"), package("macro", "MIT"), package("odd", None)],
            "resolve": {"nodes": [{"id": "carma#1", "dependencies": ["used#1", "macro#1"]}, {"id": "used#1", "dependencies": ["odd#1"]}]},
        }
        lock = '[[package]]\nname = "used"\nversion = "1.0.0"\nchecksum = "abc"\n\n[[package]]\nname = "odd"\nversion = "1.0.0"\n'
        bill = SBOM["bill"](metadata, {("carma", "v1.0.0"), ("used", "v1.0.0"), ("odd", "v1.0.0")}, lock)
        self.assertEqual(["odd", "used"], [component["name"] for component in bill["components"]])
        used = bill["components"][1]
        self.assertEqual([{"expression": "MIT OR Apache-2.0"}], used["licenses"])
        self.assertEqual([{"alg": "SHA-256", "content": "abc"}], used["hashes"])
        self.assertIn({"ref": "pkg:cargo/carma@1.0.0", "dependsOn": ["pkg:cargo/used@1.0.0"]}, bill["dependencies"])
        self.assertEqual("application", bill["metadata"]["component"]["type"])


class SameBytes(Scratch):
    def compare(self) -> subprocess.CompletedProcess:
        command = [sys.executable, PACKAGING / "same-bytes", self.folder / "a", self.folder / "b"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_every_difference_is_named(self) -> None:
        for build in ("a", "b"):
            (self.folder / build / "tree").mkdir(parents=True)
            (self.folder / build / "tree/file").write_text("same")
        self.assertEqual((0, "1 files: the same bytes\n"), (self.compare().returncode, self.compare().stdout))
        (self.folder / "empty").mkdir()
        nothing = subprocess.run([sys.executable, PACKAGING / "same-bytes", *[self.folder / "empty"] * 2], capture_output=True, check=False)
        self.assertEqual(1, nothing.returncode)
        (self.folder / "b/tree/file").write_text("other")
        (self.folder / "a/more").touch()
        found = self.compare()
        self.assertEqual(1, found.returncode)
        self.assertEqual([f"more: only in {self.folder}/a", "tree/file: differs"], found.stdout.splitlines())


if __name__ == "__main__":
    unittest.main()
