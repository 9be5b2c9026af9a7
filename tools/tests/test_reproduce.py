"""The comparison of documented tables with what their commands print."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

REPRODUCE = Path(__file__).resolve().parent.parent / "reproduce"
DOCUMENT = """# Measured

<!-- table keys=2: cat printed -->
| set | way | rows | error |
|---|---|---|---|
| one | static | 1,993 | 2.7 % (of 38) |
| | dry-run | 200 | 0.1 % |
| two | static | 7 | within 0.028 |

| by | hand |
|---|---|
| a | 3 |
"""


class Reproduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.document = self.folder / "page.md"
        self.document.write_text(DOCUMENT)

    def run_with(self, *rows, write=False):
        head = ["| set | way | rows | error |", "|---|---|---|---|"]
        (self.folder / "printed").write_text("\n".join([*head, *rows]) + "\n")
        command = [REPRODUCE, *(["--write"] if write else []), self.folder / "carma", self.folder, self.document]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))

    def test_numbers_are_compared_as_the_document_rounds_them(self):
        run = self.run_with("| one | static | 1993 | 2.7049 % (of 38) |", "| two | static | 7 | within 0.02751 |")
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)
        self.assertEqual("5 numbers in 1 tables were compared, 0 changed; 1 tables with numbers have no command\n", run.stdout)

    def test_changes_name_row_and_column_and_can_be_written(self):
        rows = ("| one | static | 1993 | 2.7500001 % (of 38) |", "| one | dry-run | 201 | 0.1 % |", "| three | static | 1 | 1 % |")
        run = self.run_with(*rows)
        self.assertEqual(1, run.returncode)
        self.assertIn("page.md:6: one, static, error: 2.7 -> 2.8", run.stdout)
        self.assertIn("page.md:7: one, dry-run, rows: 200 -> 201", run.stdout)
        self.assertIn("page.md:4: the table has no row three, static", run.stdout)
        self.assertEqual(DOCUMENT, self.document.read_text(), "nothing is written unless asked")
        self.assertEqual(0, self.run_with(*rows, write=True).returncode)
        written = self.document.read_text()
        self.assertIn("| one | static | 1,993 | 2.8 % (of 38) |\n| | dry-run | 201 | 0.1 % |\n| two | static | 7 |", written)

    def test_a_command_that_fails_is_told(self):
        self.document.write_text(DOCUMENT.replace("cat printed", "cat printed | false"))
        run = self.run_with()
        self.assertNotEqual(0, run.returncode)
        self.assertIn("the command failed with exit code 1", run.stderr)


if __name__ == "__main__":
    unittest.main()
