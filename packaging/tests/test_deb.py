"""The Debian package, of a made-up tree of release files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@unittest.skipUnless(shutil.which("dpkg-deb"), "not installed: dpkg-deb")
class Package(unittest.TestCase):
    def build(self, name: str, arch: str) -> Path:
        """The package of a tree, in a folder of its own."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tree = Path(folder.name) / "release-files" / name
        names = ["LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENCES", "CHANGELOG.md", "README.md"]
        files = ["bin/carma", "share/zsh/site-functions/_carma", "share/carma/carma.service", "share/man/man1/carma.1"]
        for file in [*files, *(f"share/doc/carma/{name}" for name in names)]:
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(f"{file}\n")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run([ROOT / "packaging/deb/build", folder.name, arch], env=environment, check=True, stdout=subprocess.DEVNULL)
        (package,) = tree.parent.glob("*.deb")
        return package

    def field(self, package: Path, name: str) -> str:
        return subprocess.run(["dpkg-deb", "--field", package, name], check=True, capture_output=True, text=True).stdout.strip()

    def test_versions_in_development_are_before_the_release(self) -> None:
        package = self.build("carma-1.2.0-dev-aarch64-linux", "aarch64")
        self.assertEqual("carma_1.2.0~dev_arm64.deb", package.name)
        self.assertEqual(("1.2.0~dev", "arm64"), (self.field(package, "Version"), self.field(package, "Architecture")))
        subprocess.run(["dpkg", "--compare-versions", self.field(package, "Version"), "lt", "1.2.0"], check=True)

    def test_the_unit_and_the_group_of_operators_are_where_systemd_looks(self) -> None:
        package = self.build("carma-1.2.0-x86_64-linux", "x86_64")
        listed = subprocess.run(["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True).stdout
        for file in ("lib/systemd/system/carma.service", "usr/lib/sysusers.d/carma.conf", "usr/lib/tmpfiles.d/carma.conf", "usr/share/man/man1/carma.1.gz"):
            self.assertIn(f" ./{file}\n", listed)

    def test_the_same_files_give_the_same_bytes(self) -> None:
        first, second = (self.build("carma-1.2.0-x86_64-linux", "x86_64").read_bytes() for _ in range(2))
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
