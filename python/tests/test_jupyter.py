"""JupyterLab as an interactive job on a shared GPU, as docs/jupyter.md describes it."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from carma.client import Client
from tests.emulated import PROGRAM, EmulatedTest

#: Of this Python's environment, or of the path.
FOLDERS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@unittest.skipIf(shutil.which("jupyter-lab", path=FOLDERS) is None, "not installed: jupyter lab")
class Jupyter(EmulatedTest):
    # Real time: a notebook starts slowly beside other tests, and emulated time limits would pass meanwhile.
    SPEED = 1

    def test_the_printed_address_is_private_and_the_job_holds_a_gpu(self) -> None:
        options = ["--interactive", "--idle", "unlimited", "--mem", "8GiB", "--name", "lab"]
        command = [PROGRAM, "submit", *options, "--", shutil.which("jupyter", path=FOLDERS), "lab", "--no-browser"]
        if os.geteuid() == 0:
            command.append("--allow-root")
        controller, terminal = pty.openpty()
        submit = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=self.folder)
        os.close(terminal)
        self.addCleanup(os.close, controller)
        self.addCleanup(submit.wait, 60)
        self.addCleanup(lambda: Client().job("@lab").cancel())
        address, token = self.printed_address(controller)
        self.assertEqual([], self.answer(f"{address}/api/kernels?token={token}"))
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{address}/api/kernels", timeout=60)
        self.assertEqual(403, refused.exception.code)
        refused.exception.close()
        (attempt,) = Client().job("@lab").show()["attempts"]
        self.assertEqual(1, len(attempt["placement"]["devices"]), attempt)

    def answer(self, address: str) -> object:
        """What Jupyter answers. It prints its address a moment before it listens."""
        end = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(address, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def printed_address(self, controller: int) -> tuple[str, str]:
        """The address and the token that Jupyter prints in the job's terminal."""
        printed = b""
        while not (found := re.search(rb"(http://(?:localhost|127\.0\.0\.1):\d+)/lab\?token=(\w+)\s", printed)):
            try:
                printed += os.read(controller, 4096)
            except OSError:
                self.fail(printed.decode(errors="replace"))
        return found[1].decode(), found[2].decode()
