"""One trace from beginning to end: the modes, the patches and the file."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any, Callable, Optional

import torch

from . import checkpoints, constants, cuda_types, data_parallel, pretended_gpu, reasons, saving, script_hooks, threads
from .cross_check import MIB, CrossCheck
from .dispatch import PLAIN_META, MemoryMode
from .events import GRADIENT, OPTIMIZER_STATE, WEIGHT, Trace
from .functions import ScriptView
from .gpu_weights import GpuWeights
from .model_inputs import ModelInputs
from .not_followed import NotFollowed
from .optimizer_steps import OptimizerSteps
from .outputs import tensors_in
from .patches import Patches
from .phases import Phases
from .quiet import unseen
from .step_growth import StepGrowth
from .storages import HOST, Storages

try:  # imported by PyTorch on first need, which must not fall into the time when torch.cuda is replaced
    import torch._dynamo  # noqa: F401
except ImportError:
    pass


class Session:
    """Everything that a trace needs, set up by `with` and removed after it."""

    def __init__(self, iterations: int = 3, devices: int = 1, stop: bool = True) -> None:
        self.trace = Trace()
        self.trace.facts = {"torch": torch.__version__, "devices": devices, "iterations": 0}
        self.storages = Storages(self.trace)
        self.steps = OptimizerSteps(iterations, self._on_gpu)
        self.phases = Phases(self.trace, self.steps, stop)
        self.memory = MemoryMode(self.trace, self.storages, self.phases)
        self.view = ScriptView(self.memory)
        self.weights = GpuWeights(self.storages)
        self.inputs = ModelInputs()
        self.not_followed = NotFollowed(self)
        self.cross_check = CrossCheck(self)
        self.growth = StepGrowth(self.storages)
        self.phases.pass_ended = self.cross_check.pass_ended
        self.devices = devices
        self.failures: list[Exception] = []  # of programs that the script started: it may have hidden them
        self.patches = Patches()
        self.closers: list[Callable[[], None]] = []
        self.placement: checkpoints.Placement
        self.to_read: Callable[[Any], Any] = lambda path: path  # where the file is that a script reads
        self.is_open = False
        self.thread_error: Optional[BaseException] = None

    def __enter__(self) -> "Session":
        pretended_gpu.install(self.patches, self.view, lambda: self.devices)
        self.not_followed.install(self.patches)
        script_hooks.install(self, self.patches)
        checkpoints.install(self, self.patches)
        data_parallel.install(self, self.patches)
        saving.install(self, self.patches)
        cuda_types.install(self, self.patches)
        threads.install(self, self.patches)
        self.is_open = True
        self.memory.__enter__()
        self.view.__enter__()
        return self

    def __exit__(self, kind: Optional[type], error: Optional[BaseException], traceback: Any) -> None:
        self.is_open = False
        self.view.__exit__(None, None, None)
        self.memory.__exit__(None, None, None)
        self.storages.collect()
        self.phases.end()
        self.finish()
        self.not_followed.tell({frame.f_code.co_filename for frame, _ in walk_tb(traceback)})
        for close in reversed(self.closers):
            close()
        self.patches.undo()
        self.storages.close()

    def finish(self) -> None:
        self.trace.facts["iterations"] = self.phases.completed
        self.trace.close()
        if self.inputs.batch is not None:
            self.trace.facts.setdefault("batch", self.inputs.batch)
        for note in self.steps.notes():
            self.trace.note(note)
        growth = self.growth.note()
        if growth is not None and self.inputs.varying is None:
            self.trace.note(growth)
        if self.storages.adopted > MIB:
            self.trace.note(
                f"tensors of {self.storages.adopted / MIB:,.0f} MiB were made where the dry run sees nothing (such as another thread). "
                "They count from their first use on, so the estimate may be too low."
            )

    def see_devices(self, count: int) -> None:
        """A launcher starts so many ranks on this server: each has a GPU of its own."""
        self.devices = self.trace.facts["devices"] = max(self.devices, count)

    def refusal(self) -> Optional[str]:
        """Why the trace cannot be used, if so."""
        if self.weights.are_missing and not self.trace.has_weights:
            return reasons.NO_WEIGHTS
        return self.cross_check.reason

    def _on_gpu(self, tensor: torch.Tensor) -> bool:
        with unseen():
            device = self.storages.device(tensor)
        return device is not None and device >= 0

    def in_host_memory(self, data: torch.Tensor) -> torch.Tensor:
        """A stand-in without memory for a tensor that the script believes to be in host memory."""
        with self.view.requesting(PLAIN_META):
            stand_in = torch.empty_strided(data.shape, data.stride(), dtype=data.dtype, device="meta")
        record = self.storages.follow(stand_in, HOST, WEIGHT)
        constants.remember(record, data, stand_in)
        return stand_in

    def note_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        with unseen():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    self.storages.reclassify(parameter, WEIGHT)
                    if parameter.grad is not None and parameter.grad.layout == torch.strided:
                        self.storages.reclassify(parameter.grad, GRADIENT)

    def note_optimizer_state(self, optimizer: torch.optim.Optimizer) -> None:
        with unseen():
            for state in optimizer.state.values():
                for tensor in tensors_in(state):
                    self.storages.reclassify(tensor, OPTIMIZER_STATE)
        self.cross_check.step_ended()
        self.growth.step_ended()
