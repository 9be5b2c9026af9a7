"""Iterations of a script that changes its weights without an optimizer of PyTorch: `p.data -= rate * p.grad`.

An iteration is then a backward pass, or several, followed by writes to weights. Where no write is seen (weights that are
computed anew each time), backward passes are counted.
"""

from __future__ import annotations

import time

MANY_PASSES, MANY_SECONDS = 64, 10.0
"""Backward passes without any update may come before training: scores for pruning, importance of weights."""
LEAST_PASSES = 128
LEAST_SECONDS = 30.0
"""Gradients are accumulated over no more passes than this, and for no longer, before an optimizer's step is made for the script."""


class OwnUpdates:
    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.passes = 0
        self.updates = 0
        self.awaited = False
        """After a backward pass: a write to a weight is an update."""
        self._began = time.monotonic()

    def backward_ended(self) -> None:
        if not self.passes:
            self._began = time.monotonic()
        self.passes += 1
        self.awaited = True

    def weight_written(self) -> None:
        if self.awaited:
            self.awaited = False
            self.updates += 1

    @property
    def completed(self) -> int:
        return self.updates or self.passes

    def enough(self) -> bool:
        """To be asked when the next iteration begins: an update has many writes."""
        if self.updates or self.passes < self.wanted:
            return self.updates >= self.wanted
        return self.passes >= MANY_PASSES or time.monotonic() - self._began >= MANY_SECONDS

    def waited(self) -> bool:
        return self.passes >= LEAST_PASSES and time.monotonic() - self._began >= LEAST_SECONDS

    def note(self) -> str:
        counted = "updates of its weights" if self.updates else "backward passes"
        return f"the script has no optimizer of PyTorch that steps, so iterations are counted by {counted} ({self.completed})"
