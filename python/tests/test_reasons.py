"""Why a script cannot be dry-run: one sentence each, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from carma.memory import reasons
from tests.support import PACKAGE, ScriptTest


def _from(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


class Sentences(ScriptTest):
    def reason(self, source: str) -> str:
        result = self.run_script(source)
        self.assertEqual(3, result.code, result.stderr)
        return json.loads(result.stderr.splitlines()[-1])["error"]

    def test_what_is_missing(self) -> None:
        self.assertRegex(self.reason("open('data/train.csv')"), r"needs /.*/data/train.csv, which does not exist")
        self.assertRegex(self.reason("import no_such_module.part"), r"needs the module 'no_such_module'.*--python")
        self.assertIn("needs the module 'absent'", reasons.reason_of(_from(RuntimeError("x"), ModuleNotFoundError("No", name="absent"))))
        self.assertRegex(self.reason("import socket\nsocket.getaddrinfo('example.org', 80)"), r"needs the network.*--network")
        self.assertRegex(self.reason("def train():\n    from jax import numpy\ntrain()"), r"needs JAX: only PyTorch scripts")

    def test_scalars_do_not_make_a_gpu_script(self) -> None:
        self.assertIn("stays on the CPU", self.reason("""
            import torch
            policy = torch.nn.Linear(4, 2)
            optimizer = torch.optim.Adam(policy.parameters())
            for _ in range(4):
                chosen = torch.distributions.Categorical(policy(torch.randn(1, 4)).softmax(1))
                returns = torch.tensor([1.0, 2.0])
                loss = torch.cat([-chosen.log_prob(chosen.sample()) * value for value in returns]).sum()
                loss.backward()
                optimizer.step()
        """))

    def test_other_frameworks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for source, framework in (("import flax.linen", "JAX"), ("from keras import layers", "Keras"), ("import torch, jax", None), ("x = (", None)):
                path = os.path.join(folder, "train.py")
                Path(path).write_text(source)
                self.assertEqual(framework, reasons.other_framework(path))

    def test_the_network_behind_another_error(self) -> None:
        error = OSError("Can't load the tokenizer")
        error.__cause__ = ConnectionRefusedError("no connections in a dry run (to x.org)")
        self.assertIn("needs the network", reasons.reason_of(error))
        self.assertEqual("ValueError: plain", reasons.reason_of(ValueError("plain")))

    def test_the_first_cause_is_told(self) -> None:
        error = RuntimeError("An error occurred")
        error.__cause__ = KeyError("field")
        self.assertEqual("RuntimeError: An error occurred (from KeyError: 'field')", reasons.reason_of(error))


class Ends(unittest.TestCase):
    def test_no_torch(self) -> None:
        run = subprocess.run([sys.executable, "-S", "-E", "-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); import runpy; "
                              "sys.modules['torch'] = None; sys.argv[0] = 'carma.memory'; runpy.run_module('carma.memory', run_name='__main__')",
                              str(PACKAGE), "trace", "-o", "x.trace", "--", "x.py"], capture_output=True, text=True)
        self.assertEqual(2, run.returncode, run.stderr)
        self.assertIn("has no PyTorch", run.stderr)
        self.assertIn("--python", run.stderr)
        self.assertEqual(1, len(run.stderr.splitlines()), run.stderr)

    def test_json_only_if_asked(self) -> None:
        run = subprocess.run([sys.executable, "-m", "carma.memory", "trace", "-o", "x.trace", "--", "missing.py"], capture_output=True, text=True, cwd=PACKAGE)
        self.assertEqual("carma: no such script: missing.py\n", run.stderr)

    def test_sigterm_leaves_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
            Path(folder, "train.py").write_text(
                "import signal, subprocess, sys, time\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "child = subprocess.Popen(['sh', '-c', 'sleep 600 & echo $!; wait'], stdout=subprocess.PIPE, start_new_session=True)\n"
                "print('started', child.stdout.readline().decode(), flush=True)\n"
                "open('written', 'w').write('x')\n"
                "time.sleep(600)\n"
            )
            run = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "carma.memory", "trace", "-o", "x.trace", "--", "train.py"], cwd=folder, stderr=subprocess.PIPE,
                text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE), "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1"},
            )
            assert run.stderr is not None
            grandchild = int(run.stderr.readline().split()[1])
            time.sleep(0.2)
            run.send_signal(signal.SIGTERM)
            rest = run.communicate(timeout=30)[1]
            self.assertEqual(3, run.returncode)
            self.assertIn("ended from outside", rest)
            self.assertEqual(([], ["train.py"]), (os.listdir(temporary), os.listdir(folder)))
            self.assertFalse(os.path.exists(f"/proc/{grandchild}") and "sleep" in Path(f"/proc/{grandchild}/cmdline").read_text(), "a process is left")


if __name__ == "__main__":
    unittest.main()
