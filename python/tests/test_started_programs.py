"""Programs that a script starts and a dry run leaves out, launchers that it does not know, and the compiler that it imports late."""

from __future__ import annotations

import json
import unittest

from tests.support import ScriptTest, torch2

TRAIN = """
    import torch
    model = torch.nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.randn(2, 4).cuda()).sum().backward()
        optimizer.step()
"""


class TestStartedPrograms(ScriptTest):
    def notes(self, source: str) -> list[str]:
        run = self.run_script(source)
        self.assertEqual(0, run.code, run.stderr)
        return json.loads(run.trace[1]).get("notes", [])

    def test_code_given_as_text_is_left_out_with_a_note(self) -> None:
        notes = self.notes('    import subprocess, sys\n    subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=True)\n' + TRAIN)
        self.assertTrue(any("-c raise SystemExit(3)`, which a dry run leaves out" in note for note in notes), notes)

    def test_installers_are_left_out_with_a_note(self) -> None:
        for command in ('[sys.executable, "-m", "pip", "install", "thing"]', '"pip install thing"'):
            notes = self.notes(f"    import os, subprocess, sys\n    subprocess.check_call({command}, shell=isinstance({command}, str))\n" + TRAIN)
            self.assertTrue(any("pip install thing`, which a dry run leaves out" in note for note in notes), notes)

    def test_launchers_with_ranks_of_their_own_are_named_in_one_sentence(self) -> None:
        run = self.run_script(TRAIN, launcher=["horovodrun", "-np", "4", "python"])
        self.assertEqual(2, run.code)
        self.assertIn("horovodrun cannot be dry-run: name the training script itself", run.stderr)

    def test_a_count_of_right_answers_is_above_zero(self) -> None:
        run = self.run_script(TRAIN + """
        prediction = model(torch.randn(2, 4).cuda()).argmax(1)
        if int((prediction == torch.tensor([1, 2]).cuda()).sum()) / 2 > 0:
            best = 1
        print(best)
        """)
        self.assertEqual(0, run.code, run.stderr)

    @torch2()
    def test_the_compiler_is_imported_only_if_the_script_asks_for_it(self) -> None:
        told = "optimizer.step(); print('real:', 'torch._dynamo.symbolic_convert' in sys.modules)"
        source = "    import sys\n" + TRAIN.replace("optimizer.step()", told)
        self.assertIn("real: False", self.run_script(source).stderr)
        asks = "    import torch._dynamo.config\n    torch._dynamo.config.suppress_errors = True\n    assert torch.cuda.is_available()\n"
        run = self.run_script("    import torch\n" + asks + source)
        self.assertEqual(0, run.code, run.stderr)
        self.assertIn("real: True", run.stderr)


if __name__ == "__main__":
    unittest.main()
