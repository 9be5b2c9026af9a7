"""A manager on emulated GPUs that ran one job, and what it prints afterwards."""

import os
import subprocess
import tempfile
from pathlib import Path


def printed(program, *commands):
    """What each command prints: metrics, export and the like."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CARMA_EMU": f"{folder}/gpus", "CARMA_SOCKET": f"{folder}/state/carma.sock", "HOME": folder}
        environment["PATH"] = f"{Path(program).resolve().parent}:{environment['PATH']}"

        def carma(*arguments):
            return subprocess.run([program, *arguments], env=environment, check=True, capture_output=True, text=True, cwd=folder).stdout

        carma("emu", "up", "--gpus", "1xA100-40GB", "--speed", "60")
        try:
            carma("up", "--detach", "--state", f"{folder}/state")
            try:
                train = "carma emu train --workload resnet50_imagenet_bs64 --seconds 60"
                carma("submit", "--wait", "--mem", "8GiB", "--", *train.split())
                return [carma(*command) for command in commands]
            finally:
                carma("down")
        finally:
            carma("emu", "down")
