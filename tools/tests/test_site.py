"""The generated reference of the documentation site, and the runner of documented commands."""
import json
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))

import api
import commands
import events
import formats
import metrics


class Reference(unittest.TestCase):
    def test_every_path_and_type_of_the_api_has_a_section(self):
        document = json.loads((ROOT / "web/openapi.json").read_text())
        endpoints, types = api.endpoints(document), api.types(document)
        for path, item in document["paths"].items():
            for method in set(item) & set(api.METHODS):
                self.assertIn(f"## {method.upper()} {path}\n", endpoints)
        for name in document["components"]["schemas"]:
            self.assertIn(f"## {name}\n", types)

    def test_types_in_words(self):
        reference = {"$ref": "#/components/schemas/JobId"}
        link = "[JobId](api-types.md#jobid)"
        self.assertEqual(link, api.name_of(reference))
        self.assertEqual(f"list of {link}", api.name_of({"type": "array", "items": reference}))
        self.assertEqual(f"null or {link}", api.name_of({"oneOf": [{"type": "null"}, reference]}))
        self.assertEqual("`a`, `b`", api.name_of({"type": "string", "enum": ["a", "b"]}))
        self.assertEqual("map of integer", api.name_of({"type": "object", "additionalProperties": {"type": "integer"}}))

    def test_commands_are_read_from_help(self):
        text = "Usage: x\n\nCommands:\n  up        Make\n            more words\n  trace-memory\n  help      Print\n\nOptions:\n  -h, --help\n"
        self.assertEqual(["up", "trace-memory"], commands.subcommands(text))
        self.assertEqual([], commands.subcommands("Usage: x\n\nOptions:\n  -h  Print\n"))

    def test_metrics_are_read_from_an_exposition(self):
        text = '# HELP a_bytes So | many.\n# TYPE a_bytes gauge\na_bytes{gpu="3",name="x"} 1\n# HELP b_total All.\n# TYPE b_total counter\nb_total 2\n'
        rows = metrics.page(text).splitlines()
        self.assertIn("| `a_bytes` | gauge | `gpu`, `name` | So \\| many. |", rows)
        self.assertIn("| `b_total` | counter |  | All. |", rows)

    def test_every_kind_of_event_has_a_row(self):
        document = json.loads((ROOT / "web/openapi.json").read_text())
        text = events.page(document)
        for variant in document["components"]["schemas"]["JobEvent"]["oneOf"]:
            self.assertIn(f"| `{variant['properties']['kind']['enum'][0]}` |", text)
        self.assertIn("| `held` | A user holds the job. | `by`: string |", text)
        self.assertIn("| `gpus` | GPUs were sampled: request them again. |  |", text)
        self.assertIn("[JobEstimate](api-types.md#jobestimate)", text)

    def test_file_formats_list_columns_and_events(self):
        files = {
            "mix.csv": "# made\na\n1\n",
            "jobs.csv": "job,on_gpus\n1,0\n2,\n",
            "compared.csv": "policy\nmagm\n",
            "log.jsonl": '{"carma_event_log": 1}\n{"at": 0, "event": {"event": "submitted"}}\n{"at": 1, "event": {"event": "submitted"}}\n',
        }
        rows = formats.page(files, "job,user\n7,ada\n").splitlines()
        for row in ("| `job` | `2` |", "| `on_gpus` |  |", "| `policy` | `magm` |", "| `user` | `ada` |"):
            self.assertIn(row, rows)
        self.assertEqual(1, sum(row.startswith("| `submitted` |") for row in rows))


class Blocks(unittest.TestCase):
    def run_blocks(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(text)
            file.flush()
            return subprocess.run([ROOT / "tools/run-blocks", file.name], capture_output=True, text=True, check=False)

    def test_commands_share_a_shell_and_output_is_compared(self):
        run = self.run_blocks("```console\n$ value=3\n$ echo is $value\nis 3\n```\n\n```\n$ false\n```\n<!-- not run -->\n```console\n$ false\n```\n")
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertIn("2 commands", run.stdout)

    def test_a_block_with_a_title_is_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text('```text title="net.txt"\n(0): $x\n```\n\n```console\n$ cat net.txt\n(0): $x\n```\n')
            run = subprocess.run([ROOT / "tools/run-blocks", page], cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(0, run.returncode, run.stderr)

    def test_other_output_and_failures_are_told_with_their_line(self):
        run = self.run_blocks("```console\n$ echo one\ntwo\n```\n")
        self.assertEqual(1, run.returncode)
        self.assertIn(":2: $ echo one\nprinted:\none\nexpected:\ntwo", run.stderr)
        self.assertIn("exit code 3", self.run_blocks("```console\n$ (exit 3)\n```\n").stderr)

    def test_dots_stand_for_text_and_lines(self):
        functions = runpy.run_path(str(ROOT / "tools/run-blocks"))
        import re

        pattern = functions["pattern"](["a ... c", "...", "end"])
        for matching in ("a  b  c\nend\n", "a x c\nmore\nlines\nend\n"):
            self.assertTrue(re.fullmatch(pattern, matching), matching)
        for other in ("a c\nend\n", "a b c\nmore\n"):
            self.assertFalse(re.fullmatch(pattern, other), other)


if __name__ == "__main__":
    unittest.main()
