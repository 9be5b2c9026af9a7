"""Tables of the documents: where their figures come from, and the comparison with what their commands print."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
ROOT = TOOLS.parent
sys.path.insert(0, str(TOOLS))

from figures import memory, readme, simulator, suite, users
from figures.document import renewed, tables

DOCUMENT = """# Measured

<!-- table keys=2: cat printed -->
| set | way | rows | error |
|---|---|---|---|
| one | static | 1,993 | 2.7 % (of 38) |
| | dry-run | 200 | 0.1 % |
| two | static | 7 | within 0.028 |

<!-- figures: `make bench` -->
| by | hand |
|---|---|
| a | 3 |

| `a4` | [b](c.md#d5) |
|---|---|
| `only=1` | A100 |
"""


class Reproduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.document = self.folder / "page.md"
        self.document.write_text(DOCUMENT)

    def run_with(self, *rows, options=()):
        head = ["| set | way | rows | error |", "|---|---|---|---|"]
        (self.folder / "printed").write_text("\n".join([*head, *rows]) + "\n")
        command = [TOOLS / "reproduce", *options, self.folder / "carma", self.folder, self.document]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))

    def test_numbers_are_compared_as_the_document_rounds_them(self):
        run = self.run_with("| one | static | 1993 | 2.7049 % (of 38) |", "| two | static | 7 | within 0.02751 |")
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)
        self.assertIn("page.md:4: the same, 5 numbers; not made by the command: one, dry-run\n", run.stdout)
        self.assertIn("page.md:11: from `make bench`\n", run.stdout)
        self.assertIn("1 tables are the same, 0 changed.\n0 slow tables were left out (ALL=1), 1 have other sources, 0 do not say", run.stdout)

    def test_changes_name_row_and_column_and_can_be_written(self):
        rows = ("| one | static | 1993 | 2.7500001 % (of 38) |", "| one | dry-run | 201 | = |", "| three | static | 1 | 1 % |")
        run = self.run_with(*rows)
        self.assertEqual(1, run.returncode)
        self.assertIn("    one, static, error: 2.7 -> 2.8\n", run.stdout)
        self.assertIn("    one, dry-run, rows: 200 -> 201\n", run.stdout)
        self.assertIn("    three, static, row: not in the table -> printed\n", run.stdout)
        self.assertEqual(DOCUMENT, self.document.read_text(), "nothing is written unless asked")
        self.assertEqual(0, self.run_with(*rows, options=["--write"]).returncode)
        written = self.document.read_text()
        self.assertIn("| one | static | 1,993 | 2.8 % (of 38) |\n| | dry-run | 201 | 0.1 % |\n| two | static | 7 |", written)

    def test_a_command_that_fails_is_told(self):
        self.document.write_text(DOCUMENT.replace("cat printed", "cat printed | false"))
        run = self.run_with()
        self.assertNotEqual(0, run.returncode)
        self.assertIn("the command failed with exit code 1", run.stdout)

    def test_slow_tables_run_on_request(self):
        self.document.write_text(DOCUMENT.replace("keys=2:", "keys=2 slow=20min:"))
        row = "| two | static | 7 | within 0.028 |"
        self.assertIn("page.md:4: left out as slow (20min; ALL=1 makes it): cat printed", self.run_with(row).stdout)
        self.assertIn("page.md:4: the same, 2 numbers", self.run_with(row, options=["--all"]).stdout)

    def test_a_table_without_a_source_is_told(self):
        self.document.write_text(DOCUMENT.replace("<!-- figures: `make bench` -->\n", ""))
        run = self.run_with("| two | static | 7 | within 0.028 |")
        self.assertEqual(1, run.returncode)
        self.assertIn("page.md:10: no comment says where these figures come from", run.stdout)

    def test_cells(self):
        self.assertEqual(("0.740 `lug`", [("0.742 `magm`", "0.740 `lug`")]), renewed("0.742 `magm`", "0.7404 `lug`"), "a name changed")
        self.assertEqual(("+51 % / 16,212, 3", []), renewed("+51 % / 16,212, 3", "+51.4 % / 16212.03, 3.1"))
        self.assertEqual(("-5 %", [("+1", "-5")]), renewed("+1 %", "-5.2 %"), "a sign changed")


class Documents(unittest.TestCase):
    def test_every_table_with_figures_says_where_they_come_from(self):
        for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
            lines = path.read_text().splitlines()
            unknown = [table.first + 1 for table in tables(lines) if table.has_figures() and not table.kind]
            self.assertEqual([], unknown, f"{path.name}: put `<!-- table: COMMAND -->` or `<!-- figures: WHERE -->` in front of these tables")

    def test_every_command_is_one_of_ours(self):
        known = {**memory.TABLES, **readme.TABLES, **simulator.TABLES, **suite.TABLES, **users.TABLES}
        used = set()
        for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
            for table in tables(path.read_text().splitlines()):
                if table.kind == "table":
                    program, name = table.text.split()
                    self.assertEqual("tables", program)
                    used.add(name)
        self.assertEqual(set(known), used)


if __name__ == "__main__":
    unittest.main()
