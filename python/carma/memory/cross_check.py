"""Compares the trace with the script's own objects: no estimate is below the tensors that the script holds.

At the end of a step a script holds its parameters, their gradients and the optimizers' states. Their bytes, each storage
counted once, must be alive in the trace. If they are not, something was made where the tracer saw nothing, and the trace is
refused. More in the trace than in the objects is ordinary: buckets of gradients, averaged copies of weights, a teacher.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Iterable, Iterator, Optional

import torch

from .events import GRADIENT, OPTIMIZER_STATE, WEIGHT
from .outputs import all_tensors
from .quiet import unseen
from .storages import storage_of

if TYPE_CHECKING:
    from .session import Session

MIB = 1 << 20
TOLERANCE = 0.02
LOOKS = 4
"""Steps after which objects and trace are compared. A difference is there from the first step on."""


class CrossCheck:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._modules: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._looks = 0
        self.reason: Optional[str] = None

    def module_called(self, module: torch.nn.Module) -> None:
        if module._parameters:
            self._modules.add(module)

    def modules(self) -> list[torch.nn.Module]:
        """Those that ran and have parameters of their own."""
        return list(self._modules)

    def step_ended(self) -> None:
        if self._looks < LOOKS:
            self._looks += 1
            self.compare()

    def pass_ended(self) -> None:
        """A backward pass that no optimizer follows: what its gradients are is noted each time."""
        if self._looks < LOOKS:
            self.step_ended()
        else:
            with unseen():
                self._held()

    def compare(self) -> None:
        """Remembers the reason for a refusal; the last comparison decides."""
        with unseen():
            held = self._held()
        followed = bytes_alive(self._session.trace.lines, (WEIGHT, GRADIENT, OPTIMIZER_STATE))
        self.reason = None
        for device, size in sorted(held.items()):
            found = followed.get(device, 0)
            if size - found > max(MIB, TOLERANCE * size):
                self.reason = (
                    f"weights, gradients and optimizer state take {size / MIB:,.0f} MiB on GPU {device}, but the dry run followed the "
                    f"making of {found / MIB:,.0f} MiB: the estimate would be too low"
                )

    def _held(self) -> dict[int, int]:
        """Bytes on each GPU that the script's objects hold. What they are is noted in the trace."""
        sizes: dict[int, dict[int, int]] = {}
        for device, tensor, kind in self._placed():
            if tensor.layout != torch.strided or not tensor.is_meta:
                continue
            try:
                storage = storage_of(tensor)
            except NotImplementedError:  # a class of its own that wraps others
                continue
            sizes.setdefault(device, {})[storage._cdata] = storage.nbytes()
            self._session.storages.reclassify(tensor, kind)
        return {device: sum(storages.values()) for device, storages in sizes.items()}

    def _placed(self) -> Iterator[tuple[int, torch.Tensor, str]]:
        """Parameters, gradients and states with their GPU. One that is not followed is taken to be on the current GPU."""
        here = self._session.memory.current_device
        device_of = self._session.storages.device
        for parameter in self._parameters():
            device, gradient = device_of(parameter), parameter.grad if parameter.is_leaf else None
            is_lost = device is None and parameter.is_meta and gradient is not None
            if is_lost or (device is not None and device >= 0):
                place = here if device is None else device
                yield place, parameter, WEIGHT
                if gradient is not None:
                    yield place, gradient, GRADIENT
        for optimizer in self._session.steps.alive():
            for tensor in all_tensors(list(optimizer.state.values())):
                device = device_of(tensor)
                if device is None or device >= 0:
                    yield here if device is None else device, tensor, OPTIMIZER_STATE

    def _parameters(self) -> Iterable[torch.Tensor]:
        found = {id(p): p for optimizer in self._session.steps.alive() for group in optimizer.param_groups for p in group["params"]}
        for module in self.modules():
            found.update((id(p), p) for p in module._parameters.values() if isinstance(p, torch.Tensor))
        return found.values()


def bytes_alive(lines: Iterable[str], kinds: Iterable[str]) -> dict[int, int]:
    """Bytes by device that a trace leaves allocated, of these kinds."""
    wanted = frozenset(kinds)
    alive: dict[str, tuple[int, int]] = {}
    for line in lines:
        if line[0] == "+":
            words = line.split()
            if words[3] in wanted:
                alive[words[1]] = int(words[4]) if len(words) > 4 else 0, int(words[2])
        elif line[0] == "-":
            alive.pop(line[2:], None)
    totals: dict[int, int] = {}
    for device, size in alive.values():
        totals[device] = totals.get(device, 0) + size
    return totals
