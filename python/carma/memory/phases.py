"""Where in training the script is: building, forward, backward, optimizer; and when the wanted iterations are done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from .events import Trace
from .optimizer_steps import OptimizerSteps

if TYPE_CHECKING:
    import torch

BUILDING, FORWARD, BACKWARD, OPTIMIZER, BETWEEN = "building", "forward", "backward", "optimizer", "between"


class TraceComplete(BaseException):
    """Leaves the script once enough was seen. Not an `Exception`, so that scripts do not handle it as an error of theirs."""


class Phases:
    """Follows the phases; an iteration ends with the step of the optimizer (of each of them, where there are several)."""

    def __init__(self, trace: Trace, steps: OptimizerSteps, stop: bool) -> None:
        self.trace = trace
        self.steps = steps
        self.stop = stop
        self.phase = BUILDING
        self.completed = 0
        self.finished = False  # what a script does on its way out is no failure any more
        self._started = False
        self._backward_depth = 0
        self._marked = 0

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

    def step_begins(self, optimizer: "torch.optim.Optimizer") -> None:
        self._start()
        if self.steps.begin(optimizer):
            self._enter(OPTIMIZER)

    def step_ends(self, note_state: Callable[[], None]) -> None:
        if not self.steps.end():
            return
        note_state()
        self.phase = BETWEEN
        self.completed = self.steps.completed
        if self.stop and self.steps.enough():
            self.finished = True
            self.trace.close()
            raise TraceComplete
        if self.completed > self._marked:
            self._marked = self.completed
            self.trace.mark(f"iteration {self.completed + 1}")

    def step_abandoned(self) -> None:
        self.steps.abandon()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.trace.mark("iteration 1")

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.trace.mark(phase)
