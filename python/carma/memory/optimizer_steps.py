"""Steps of the optimizers that a script constructs: when enough was seen, and which of them never stepped.

    steps of the critic     1  2  3  4  5     6 ... 10     11 ... 15
    steps of the generator                1          2            3    enough

Tracing ends when each has the wanted steps. One that steps rarely, or never, is waited for within bounds.
"""

from __future__ import annotations

import gc
import time
import weakref
from typing import Callable

import torch

FURTHER_STEPS = 128
"""Steps of the busiest optimizer without one of those waited for: the first WGAN took 100 steps of the critic to one of the generator."""
FURTHER_SECONDS = 30.0


class _Entry:
    """One optimizer; it outlives the optimizer's own object."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.steps = 0
        self.dropped_at = -1
        """Steps of all optimizers when the script let go of this one."""


class OptimizerSteps:
    def __init__(self, wanted: int, on_gpu: Callable[[torch.Tensor], bool]) -> None:
        self.wanted = wanted
        self._on_gpu = on_gpu
        self._entries: list[_Entry] = []
        self._alive: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Entry] = weakref.WeakKeyDictionary()
        self._running: list[torch.optim.Optimizer] = []
        self.total = 0
        self._busiest_at_progress = 0
        self._time_of_progress = time.monotonic()

    def constructed(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer in self._alive:
            return  # a class that initialises itself twice
        entry = _Entry(type(optimizer).__name__, len(self._entries) + 1)
        self._entries.append(entry)
        self._alive[optimizer] = entry
        weakref.finalize(optimizer, self._dropped, entry).atexit = False

    def _dropped(self, entry: _Entry) -> None:
        entry.dropped_at = self.total

    def begin(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether the step is the outermost: optimizers call others, and classes their parents."""
        self._running.append(optimizer)
        return len(self._running) == 1

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    def alive(self) -> list[torch.optim.Optimizer]:
        return list(self._alive)

    def expected(self) -> list[torch.optim.Optimizer]:
        """Those that have not stepped, with parameters on a GPU."""
        return [optimizer for optimizer, entry in list(self._alive.items()) if not entry.steps and self._is_expected(optimizer)]

    def abandon(self) -> None:
        self._running.pop()

    def end(self) -> bool:
        optimizer = self._running.pop()
        if not any(running is optimizer for running in self._running):
            self._count(optimizer)
        return not self._running

    def _count(self, optimizer: torch.optim.Optimizer) -> None:
        self.constructed(optimizer)
        entry = self._alive[optimizer]
        entry.steps += 1
        self.total += 1
        if entry.steps <= self.wanted:
            self._busiest_at_progress = self._busiest()
            self._time_of_progress = time.monotonic()

    def _busiest(self) -> int:
        return max((entry.steps for entry in self._alive.values()), default=0)

    @property
    def completed(self) -> int:
        """Iterations: steps of the optimizer that has fewest, of those that step at all."""
        return min((entry.steps for entry in self._alive.values() if entry.steps), default=0)

    def enough(self) -> bool:
        busiest = self._busiest()
        if busiest < self.wanted:
            return False
        if not any(entry.steps < self.wanted and self._is_expected(optimizer) for optimizer, entry in list(self._alive.items())):
            return True
        waited = busiest - self._busiest_at_progress >= FURTHER_STEPS
        return waited or time.monotonic() - self._time_of_progress >= FURTHER_SECONDS

    def _is_expected(self, optimizer: torch.optim.Optimizer) -> bool:
        """One that has not stepped may still do so, if it has anything on a GPU."""
        if self._alive[optimizer].steps:
            return True
        return any(self._on_gpu(parameter) for parameter in _parameters(optimizer)) and not self._steps_by_others(optimizer)

    def _steps_by_others(self, optimizer: torch.optim.Optimizer) -> bool:
        """An optimizer in two halves (SAM) has state of its own, but leaves the step to one inside it."""
        if not optimizer.state:
            return False
        stepped = {id(p) for other, entry in list(self._alive.items()) if entry.steps for p in _parameters(other)}
        return all(id(parameter) in stepped for parameter in _parameters(optimizer))

    def notes(self) -> list[str]:
        """A sentence for each optimizer that was there to the end and never stepped."""
        unused = [entry for entry in self._entries if not entry.steps]
        if not unused or not self.total:
            return []
        went_last = {entry.number for entry in unused if entry.dropped_at == self.total}  # at the end of a script they all go
        gc.collect()  # cycles keep optimizers that the script has replaced
        held = {entry.number for optimizer, entry in list(self._alive.items()) if not self._steps_by_others(optimizer)}
        return [self._note(entry) for entry in unused if entry.number in went_last | held]

    def _note(self, entry: _Entry) -> str:
        return (
            f"optimizer {entry.number} of {len(self._entries)} ({entry.name}) made no step in the first {self.total} optimizer steps, "
            "so its state and its backward pass are not in the estimate. If it steps later, use a larger --iterations."
        )


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
