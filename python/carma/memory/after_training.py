"""What a script does after the wanted iterations: a step with its largest batch, the end of the epoch, validation.

The loader that feeds training ends early, so that the script goes on to what follows the epoch; any other loader ends after
a few batches. The trace ends when the script trains on, or after a while. From here on, nothing that goes wrong is a failure.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Optional

import torch

from . import failure, largest_batch
from .batches import Batches, Loader, Reading
from .cross_check import MIB
from .events import TEMPORARY
from .patches import Patches
from .time_limit import end_within

if TYPE_CHECKING:
    from .session import Session

FURTHER_STEPS = 3
"""Of each optimizer. Loaders that look ahead have one or two batches left when they end, and the largest batch is one more."""
BATCHES = 3
"""Of a loader that does not feed training: enough to see whether memory grows with each."""
LEAST_SECONDS, MOST_SECONDS = 5.0, 20.0
GROWTH = 64 << 10
"""Bytes with each batch, from which memory grows."""


class AfterTraining:
    def __init__(self, session: "Session", batches: Batches, patches: Patches) -> None:
        self._session = session
        self._batches = batches
        self._patches = patches
        self._began = time.monotonic()
        self._steps = 0
        self._largest_given = False
        self._grown: list[int] = []
        self._varied = False
        self.has_begun = False
        self.evaluated = False

    def install(self) -> None:
        self._batches.end = self
        self._session.phases.goes_on = self.goes_on
        self._session.closers.append(self.tell)

    def goes_on(self) -> bool:
        """Called at the end of each step from the last wanted one on."""
        if not self.has_begun:
            if not self._batches.training():
                return False
            self.has_begun = True
            self._tell_batch()
            end_within(min(MOST_SECONDS, max(LEAST_SECONDS, time.monotonic() - self._began)))
            _evaluate_now(self, self._patches)
            return True
        self._steps += 1
        return self._steps < FURTHER_STEPS * max(1, len(self._session.steps.alive()))

    # -- batches

    def asked(self, reading: Reading, iterator: Any) -> Any:
        """A batch in place of the next one, or None for that; the loader may end, and so may the trace."""
        loader = reading.loader
        if loader.trains and (torch.is_grad_enabled() or not reading.began_after_training):
            batch = self._largest(reading, iterator)
            if batch is not None:
                return batch
            if reading.began_after_training or reading.has_ended:
                self._session.phases.complete()  # the next epoch
            reading.has_ended = True
            raise StopIteration
        self.evaluated = True
        self._watch_growth(reading)
        if len(reading.live) > BATCHES:
            raise StopIteration
        return None

    def _largest(self, reading: Reading, iterator: Any) -> Any:
        if self._largest_given:
            return None
        self._largest_given = True
        seen, varies = reading.loader.most, reading.loader.varies
        self._varied |= varies
        try:
            found = largest_batch.find(reading.source, iterator, varies)
        except Exception as error:
            if varies:
                self._session.trace.note(
                    f"batches vary in size, and the largest could not be found ({failure.of_exception(error).error}): "
                    f"the estimate is for batches of up to {seen:,} elements"
                )
            return None
        if found is None:
            return None
        is_larger = found.elements > largest_batch.CLOSE * seen
        is_part = found.of is None or found.looked_at < found.of
        if is_larger or is_part:
            self._session.trace.note(_told(found, seen, is_larger, is_part))
        return found.batch if is_larger else None

    # -- memory that grows

    def _watch_growth(self, reading: Reading) -> None:
        """What is kept of each batch (outputs for a metric) is kept of all of them."""
        session = self._session
        session.storages.collect()
        if not reading.live:
            for identity in self._grown:  # of the loader before
                session.trace.free(identity)
            self._grown = []
        reading.live.append(session.storages.live_bytes())
        if len(reading.live) <= BATCHES:
            return
        try:
            left = len(reading.source) - BATCHES
        except TypeError:  # it does not know its length
            left = 0
        before, middle, now = reading.live[-3:]
        for device, size in now.items():
            growth = min(size - middle.get(device, 0), middle.get(device, 0) - before.get(device, 0))
            if growth < GROWTH:
                continue
            if left > 0:
                self._grown.append(session.trace.allocate(growth * left, TEMPORARY, device))
            counted = f"{left} further batches are counted so" if left > 0 else "further batches are not in the estimate"
            session.trace.note(f"each batch of a loader after training leaves {growth / MIB:,.1f} MiB on GPU {device}: {counted}")

    # -- the end

    def failed(self, error: BaseException) -> None:
        if self.has_begun and not self.evaluated and isinstance(error, Exception):
            reason = failure.of_exception(error).error
            self._session.trace.note(f"what follows the first epoch (validation) could not be followed: {reason}")

    def out_of_time(self) -> None:
        if not self.evaluated and any(self._is_larger(loader) for loader in self._batches.unread()):
            self._session.trace.note("what follows the first epoch (validation) was not reached in time: it is not in the estimate")

    def tell(self) -> None:
        """At the end, while the script's objects are still there."""
        self._tell_batch()
        self._tell_varying_inputs()
        for loader in self._batches.unread():
            if self._session.phases.finished and self._is_larger(loader):
                self._session.trace.note(
                    f"a data loader with batches of {loader.batch} (training: {self.batch()}) was not read, "
                    "so what the script does with it is not in the estimate"
                )

    def _tell_batch(self) -> None:
        batch = self.batch()
        if batch is not None:
            self._session.trace.facts["batch"] = batch

    def _tell_varying_inputs(self) -> None:
        """Images that are scaled at random on the GPU: no loader knows."""
        varying = self._session.inputs.varying
        self._varied |= any(loader.varies for loader in self._batches.training())
        if varying is not None and not self._varied:
            self._session.trace.note(
                f"the model's inputs vary in size from step to step ({varying[0]:,} to {varying[1]:,} elements): "
                "larger ones in later steps are not in the estimate"
            )

    def _is_larger(self, loader: Loader) -> bool:
        batch, training = loader.batch, self.batch()
        return batch is not None and training is not None and batch > training

    def batch(self) -> Optional[int]:
        return next((loader.batch for loader in self._batches.training() if loader.batch), None)


def _told(found: largest_batch.Found, seen: int, is_larger: bool, is_part: bool) -> str:
    what = "samples" if found.of is not None else "further batches"
    text = f"batches vary in size: the traced ones have up to {seen:,} elements"
    if is_larger:
        text += f", the largest that {found.looked_at:,} {what} can make has {found.elements:,}, and a step with it is in the estimate"
    else:
        text += f", and {found.looked_at:,} {what} make none that is larger"
    if is_part:
        text += f"; no more{'' if found.of is None else f' of {found.of:,}'} were looked at, so a larger batch is possible"
    return text


def _evaluate_now(after: AfterTraining, patches: Patches) -> None:
    """Frameworks that validate after so many batches do so after the wanted iterations."""
    for name in ("lightning.pytorch.loops.training_epoch_loop", "pytorch_lightning.loops.training_epoch_loop"):
        loop = getattr(sys.modules.get(name), "_TrainingEpochLoop", None)
        if loop is not None:
            check = loop._should_check_val_fx

            def should_check(self: Any, *args: Any, check: Any = check) -> bool:
                return check(self, *args) or (self.trainer.enable_validation and not after.evaluated)

            patches.set(loop, "_should_check_val_fx", should_check)
    flow = getattr(sys.modules.get("transformers.trainer_callback"), "DefaultFlowCallback", None)
    if flow is not None:
        step_end = flow.on_step_end

        def on_step_end(self: Any, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
            control = step_end(self, args, state, control, **kwargs)
            strategy = getattr(args, "eval_strategy", None) or getattr(args, "evaluation_strategy", "no")
            if getattr(strategy, "value", strategy) == "steps" and not after.evaluated:
                control.should_evaluate = True
            return control

        patches.set(flow, "on_step_end", on_step_end)
