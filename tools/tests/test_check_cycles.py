"""The check for cycles, on tiny crates made up here."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parent.parent / "check-cycles"


class Cycles(unittest.TestCase):
    def check(self, **files):
        """Runs the check on one crate with these files; a dot in a name stands for a folder."""
        with tempfile.TemporaryDirectory() as folder:
            crate = Path(folder) / "tiny"
            (crate / "src").mkdir(parents=True)
            (crate / "Cargo.toml").write_text("[package]")
            for name, text in files.items():
                path = crate / "src" / (name.replace("__", "/") + ".rs")
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_a_cycle_fails_and_names_its_files(self):
        code, output = self.check(
            lib="mod a;\nmod b;\nmod c;\npub use c::Shown;\n",
            a__mod="use crate::b::{self, Thing as Other};\npub struct A;\n",
            a__inner="pub struct Inner;\n",
            b="use crate::Shown;\npub struct Thing;\n",
            c="pub struct Shown;\nfn f() { crate::a::g(); }\n",
        )
        self.assertEqual(code, 1)
        for line in ("a, b, c", "a uses b in a/mod.rs", "b uses c in b.rs", "c uses a in c.rs"):
            self.assertIn(line, output)

    def test_tests_comments_texts_and_the_root_do_not_count(self):
        code, output = self.check(
            lib="mod a;\nmod b;\nuse a::A;\n",
            a="pub struct A; // as crate::b::B\nconst TEXT: &str = \"crate::b::B\";\n#[cfg(test)]\nmod tests {\n  use crate::b::B;\n}\n",
            b="use crate::a::A;\npub struct B;\n",
        )
        self.assertEqual((code, output), (0, ""))


if __name__ == "__main__":
    unittest.main()
