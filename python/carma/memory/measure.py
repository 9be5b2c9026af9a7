"""The memory of a training job on a real GPU: the peak that the device shows, read once a second."""

from __future__ import annotations

import threading
import time
from typing import Any

import torch

from .recipes import Workload, train

SECONDS = 60.0
MIB = 2**20


class Sampler:
    """Reads a device's used memory in a thread of its own, so that peaks between iterations are seen too."""

    def __init__(self, interval: float = 1.0) -> None:
        self.most = 0
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.read()

    def read(self) -> None:
        free, total = torch.cuda.mem_get_info()
        self.most = max(self.most, total - free)

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            self.read()


def measure(workload: Workload, seconds: float = SECONDS) -> dict[str, Any]:
    """Trains for a while, and returns the used memory and whether it ran out."""
    if not torch.cuda.is_available():
        raise RuntimeError("there is no GPU to measure on")
    end = time.monotonic() + seconds
    crashed = False
    with Sampler() as sampler:
        try:
            train(workload, lambda: time.monotonic() < end)
        except torch.cuda.OutOfMemoryError:
            crashed = True
    torch.cuda.empty_cache()
    return {"memory_mib": sampler.most / MIB, "crashed": crashed}
