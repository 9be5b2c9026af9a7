"""What the script of a dry run looked at: the reason to repeat the run when it changes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from carma.memory import runner
from carma.memory.inputs import OWN_FOLDER, Inputs
from carma.memory.programs import parse_script

SCRIPT = """
import glob, json, os, subprocess, torch
from helper import SIZE
width = SIZE + len(glob.glob("data/*")) + os.path.exists("last.ckpt")
EXTRA
model = torch.nn.Linear(width, width, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    model(torch.zeros(4, width, device="cuda")).sum().backward()
    optimizer.step()
    with open("log.txt", "w") as log:
        log.write(str(step))
"""


class InputsTest(unittest.TestCase):
    def look(self, extra: str = "") -> dict:
        """The inputs of a dry run in a folder with the script, a module and data."""
        with tempfile.TemporaryDirectory() as folder:
            self.place = os.path.realpath(folder)
            for name, text in (("train.py", SCRIPT.replace("EXTRA", extra)), ("helper.py", "SIZE = 8"), ("data/a.bin", ""), ("sizes.json", "1")):
                Path(self.place, name).parent.mkdir(exist_ok=True)
                Path(self.place, name).write_text(text)
            sys.modules.pop("helper", None)  # of another test
            before = os.getcwd()
            os.chdir(self.place)
            try:
                program = parse_script(["train.py"])
                inputs = os.path.join(folder, "inputs.json")
                self.assertEqual(runner.trace_script(runner.Run(output=os.path.join(folder, "t"), program=program, inputs=inputs)), 0)
                return json.loads(Path(inputs).read_text())
            finally:
                os.chdir(before)

    def names(self, paths: list) -> set:
        return {os.path.relpath(path, self.place) for path in paths if path.startswith(self.place + os.sep)}

    def test_files_that_are_read_or_missing_and_folders_that_are_listed(self) -> None:
        known = self.look('with open("sizes.json") as sizes:\n    json.load(sizes)')
        self.assertTrue(known["complete"])
        self.assertLessEqual({"train.py", "helper.py", "sizes.json", "last.ckpt"}, self.names(known["files"]))
        self.assertEqual(self.names(known["folders"]), {"data"})
        self.assertIn(self.place, known["imports"])

    def test_what_the_script_writes_and_the_recorder_are_no_inputs(self) -> None:
        known = self.look()
        self.assertFalse({"log.txt", "t", "inputs.json"} & self.names(known["files"]))
        self.assertFalse([path for path in known["files"] if "/carma/memory/" in path])
        self.assertNotIn(OWN_FOLDER, known["imports"])

    def test_another_program_may_read_anything(self) -> None:
        self.assertFalse(self.look('subprocess.run(["true"])')["complete"])

    def test_folders_of_one_run_alone_are_no_inputs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            inputs, written = Inputs(os.path.join(folder, "scratch")), os.path.join(folder, "inputs")
            sys.path.insert(0, os.path.join(os.path.realpath(folder), "scratch", "modules"))
            try:
                inputs.write(written)
            finally:
                del sys.path[0]
            imports = json.loads(Path(written).read_text())["imports"]
        self.assertFalse([path for path in imports if path == OWN_FOLDER or path.startswith(folder)])
        self.assertIn(os.path.dirname(os.__file__), imports)


if __name__ == "__main__":
    unittest.main()
