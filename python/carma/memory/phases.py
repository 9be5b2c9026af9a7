"""Where in training the script is: building, forward, backward, optimizer; and when the wanted iterations are done."""

from __future__ import annotations

import weakref
from typing import Callable

from .events import Trace

BUILDING, FORWARD, BACKWARD, OPTIMIZER, BETWEEN = "building", "forward", "backward", "optimizer", "between"


class TraceComplete(BaseException):
    """Leaves the script once enough was seen. Not an `Exception`, so that scripts do not handle it as an error of theirs."""


class Phases:
    """Follows the phases; an iteration ends with the step of the optimizer (of each of them, where there are several)."""

    def __init__(self, trace: Trace, iterations: int, stop: bool) -> None:
        self.trace = trace
        self.wanted = iterations
        self.stop = stop
        self.phase = BUILDING
        self.completed = 0
        self.finished = False  # what a script does on its way out is no failure any more
        self._started = False
        self._steps: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._backward_depth = 0
        self._step_depth = 0

    @property
    def in_forward(self) -> bool:
        return self.phase in (BUILDING, FORWARD)

    @property
    def computing(self) -> bool:
        return self.phase in (FORWARD, BACKWARD, OPTIMIZER)

    def input_arrives(self) -> None:
        self._start()

    def module_called(self) -> None:
        if self.phase not in (BACKWARD, OPTIMIZER) and self._backward_depth == 0 and self.phase != FORWARD:
            self._start()
            self._enter(FORWARD)

    def backward_begins(self) -> None:
        self._start()
        self._backward_depth += 1
        if self._backward_depth == 1:
            self._enter(BACKWARD)

    def backward_ends(self) -> None:
        self._backward_depth -= 1
        if self._backward_depth == 0:
            self.phase = BETWEEN

    def step_begins(self) -> None:
        self._start()
        self._step_depth += 1
        if self._step_depth == 1:
            self._enter(OPTIMIZER)

    def step_ends(self, optimizer: object, note_state: Callable[[], None]) -> None:
        self._step_depth -= 1
        if self._step_depth:
            return
        note_state()
        self.phase = BETWEEN
        self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        done = min(self._steps.values())
        if done > self.completed:
            self.completed = done
            if self.stop and self.completed >= self.wanted:
                self.finished = True
                self.trace.close()
                raise TraceComplete
            self.trace.mark(f"iteration {self.completed + 1}")

    def step_abandoned(self) -> None:
        self._step_depth -= 1

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.trace.mark("iteration 1")

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.trace.mark(phase)
