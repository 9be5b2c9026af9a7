"""Where in training the script is: building, forward, backward, optimizer; and when the wanted iterations are done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional

from .events import Trace
from .optimizer_steps import OptimizerSteps
from .own_updates import OwnUpdates

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
        self.own = OwnUpdates(steps.wanted)
        self.passes = 0  # backward passes
        self.phase = BUILDING
        self.completed = 0
        self.finished = False  # what a script does on its way out is no failure any more
        self.pass_ended: Callable[[], None] = lambda: None  # called after a backward pass that no optimizer's step has followed yet
        self.goes_on: Optional[Callable[[], bool]] = None  # whether the trace goes on, for what comes after training
        self._started = False
        self._backward_depth = 0
        self._marked = 0
        self._passes_seen = 0

    @property
    def in_forward(self) -> bool:
        return self.phase in (BUILDING, FORWARD)

    @property
    def computing(self) -> bool:
        return self.phase in (FORWARD, BACKWARD, OPTIMIZER)

    def input_arrives(self) -> None:
        self._start()

    def module_called(self) -> bool:
        """Whether a forward pass begins with it."""
        if self.phase not in (BACKWARD, OPTIMIZER) and self._backward_depth == 0 and self.phase != FORWARD:
            self._next_iteration()
            self._start()
            self._enter(FORWARD)
            return True
        return False

    def backward_begins(self) -> None:
        if self._backward_depth == 0:
            self._next_iteration()
        self._start()
        self._backward_depth += 1
        if self._backward_depth == 1:
            self._enter(BACKWARD)

    def backward_ends(self) -> None:
        self._backward_depth -= 1
        if self._backward_depth == 0:
            self.phase = BETWEEN
            self.passes += 1
            if not self.steps.total and not self.steps.is_running:
                self.own.backward_ended()
                self.pass_ended()

    def _next_iteration(self) -> None:
        """Where no optimizer steps, iterations are the script's own updates; a step that is long overdue is made for it."""
        if not self.own.passes or self.steps.total or self.steps.is_running or (self.finished and self.own.passes == self._passes_seen):
            return
        self._passes_seen = self.own.passes
        late = self.steps.expected()
        if not late and self.own.enough():
            self.completed = self.own.completed
            self._enough()
        elif late and self.own.waited():
            passes = self.own.passes
            for optimizer in late:
                optimizer.step()
            names = ", ".join(type(optimizer).__name__ for optimizer in late)
            self.trace.note(f"{passes} backward passes went by without a step of {names}, so one step was made for it to count its state")
            self._enough()

    def step_begins(self, optimizer: "torch.optim.Optimizer") -> None:
        self._start()
        if self.steps.begin(optimizer):
            self._enter(OPTIMIZER)

    def step_ends(self, note_state: Callable[[], None]) -> None:
        if not self.steps.end():
            return
        note_state()
        self.phase = BETWEEN
        if not self.finished:
            self.completed = self.steps.completed
        if self.steps.enough():
            self._enough()
        if self.completed > self._marked and not self.finished:
            self._marked = self.completed
            self.trace.mark(f"iteration {self.completed + 1}")

    def _enough(self) -> None:
        if not self.stop:
            return
        self.finished = True
        if self.goes_on is None or not self.goes_on():
            self.complete()

    def complete(self) -> None:
        self.finished = True
        self.trace.close()
        raise TraceComplete

    def end(self) -> None:
        """The script is over."""
        if not self.steps.total and self.own.passes:
            self.completed = self.own.completed
            if not self.steps.expected():
                self.trace.note(self.own.note())

    def step_abandoned(self) -> None:
        self.steps.abandon()

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self.trace.mark("iteration 1")

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.trace.mark(phase)
