"""Functions that tests send to jobs: pickle finds them by their module."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from carma.executor import Call


def scaled(number: int, scale: int = 1) -> int:
    print(f"scaling {number}")
    print("with care", file=sys.stderr)
    return number * scale


def placed() -> tuple[str | None, str | None, str]:
    return os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CARMA_ARRAY_INDEX"), os.getcwd()


def refuse(words: str) -> None:
    raise LookupError(words)


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("not to be sent")
        self.lock = threading.Lock()


def refuse_oddly() -> None:
    raise Unpicklable


def run_out_of_memory() -> None:
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")


def vanish() -> None:
    print("these were my last words", file=sys.stderr)
    os._exit(7)


def wait_for(file: str) -> str:
    while not Path(file).exists():
        time.sleep(0.01)
    return Path(file).read_text()


class Steps:
    """Counts to ten, one step for each file, and continues where it was interrupted."""

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def __call__(self, started: str) -> tuple[int, str]:
        first, attempt = self.step, os.environ["CARMA_ATTEMPT"]
        if attempt == "1":
            self.step = 5
            Path(started).touch()
            time.sleep(600)
        return first, attempt

    def checkpoint(self, started: str) -> Call:
        return Call(Steps(self.step), started)
