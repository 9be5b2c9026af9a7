"""`DistributedDataParallel`: the wrapped module, and flat buckets of gradients that are one more copy of them.

    construction     one bucket of all gradients (of a type); one for each 25 MiB where unused parameters are looked for
    second forward   buckets anew, in the order in which gradients came: a first of 1 MiB, then 25 MiB each

With `gradient_as_bucket_view` the gradients lie in the buckets, and old and new buckets live together while they are made anew.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator

import torch
import torch.distributed
from torch import nn

from .events import GRADIENT
from .patches import Patches
from .quiet import unseen

if TYPE_CHECKING:
    from .session import Session

MIB = 1 << 20
BUCKET_MIB = 25
BROADCAST = 250 * MIB
"""Bytes of a flat copy by which parameters are sent at the beginning; two are under way at a time."""


def install(session: "Session", patches: Patches) -> None:
    stand_in = stand_in_for(nn.parallel.DistributedDataParallel, session)
    patches.set(nn.parallel, "DistributedDataParallel", stand_in)
    patches.set(nn.parallel.distributed, "DistributedDataParallel", stand_in)


def assignment(tensors: list[torch.Tensor], limits: list[int]) -> list[list[int]]:
    """Positions of the tensors of each bucket, by PyTorch's own rule."""
    with unseen():
        return torch.distributed._compute_bucket_assignment_by_size(tensors, limits)[0] if tensors else []


def stand_in_for(original: type, session: "Session") -> type:
    class DistributedDataParallel(original):  # type: ignore[valid-type, misc]
        """A subclass, for `isinstance`."""

        def __init__(
            self, module: nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
            init_sync: Any = True, process_group: Any = None, bucket_cap_mb: Any = None, find_unused_parameters: bool = False,
            check_reduction: bool = False, gradient_as_bucket_view: bool = False, static_graph: bool = False, **_: Any,
        ) -> None:
            nn.Module.__init__(self)
            self.module = module
            self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
            self.device = next(iter(module.parameters())).device
            self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
            self.gradient_as_bucket_view, self.broadcast_buffers = gradient_as_bucket_view, broadcast_buffers
            self.require_backward_grad_sync = True
            self.process_group = process_group
            self.bucket_bytes_cap = int((bucket_cap_mb or BUCKET_MIB) * MIB)
            self._limits = [torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, self.bucket_bytes_cap]
            self._parameters_reduced = [p for p in module.parameters() if p.requires_grad]
            self._arrived: list[int] = []
            self._hooks = [p.register_hook(self._arrival(i)) for i, p in enumerate(self._parameters_reduced)]
            self._rebuilds = static_graph or not find_unused_parameters
            if init_sync:
                self._broadcast([tensor.detach() for tensor in (*module.parameters(), *module.buffers())])
            self._buckets: list[torch.Tensor] = []
            first = assignment(self._parameters_reduced, [sys.maxsize] if self._rebuilds else self._limits)
            self._make_buckets(list(reversed(first)))

        def forward(self, *inputs: Any, **kwargs: Any) -> Any:
            if self._rebuilds and self._arrived and torch.is_grad_enabled():
                self._rebuilds = False
                self._rebuild()
            if self.broadcast_buffers:
                self._broadcast([buffer.detach() for buffer in self.module.buffers()])
            return self.module(*inputs, **kwargs)

        @contextmanager
        def no_sync(self) -> Iterator[None]:
            before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
            try:
                yield
            finally:
                self.require_backward_grad_sync = before

        def register_comm_hook(self, *_: Any, **__: Any) -> None:
            return None

        def _set_static_graph(self) -> None:
            self.static_graph = True

        def __getstate__(self) -> Any:
            return dict(self.__dict__)

        def __setstate__(self, state: Any) -> None:
            self.__dict__.update(state)

        # -- buckets

        def _rebuild(self) -> None:
            missing = [i for i in range(len(self._parameters_reduced)) if i not in set(self._arrived)]
            order = [*dict.fromkeys(self._arrived), *missing]
            found = assignment([self._parameters_reduced[i] for i in order], self._limits)
            self._buckets.clear()
            self._make_buckets([[order[position] for position in bucket] for bucket in found])

        def _make_buckets(self, buckets: list[list[int]]) -> None:
            self._places: dict[int, tuple[int, int]] = {}
            for bucket in buckets:
                parameters = [self._parameters_reduced[i] for i in bucket]
                flat = torch.empty(sum(p.numel() for p in parameters), dtype=parameters[0].dtype, device=parameters[0].device)
                with unseen():
                    session.storages.reclassify(flat, GRADIENT)
                offset = 0
                for i, parameter in zip(bucket, parameters):
                    self._places[i] = len(self._buckets), offset
                    offset += parameter.numel()
                self._buckets.append(flat)
                if self.gradient_as_bucket_view:
                    for i, parameter in zip(bucket, parameters):
                        if parameter.grad is not None:
                            parameter.grad = self._view(i)

        def _view(self, i: int) -> torch.Tensor:
            bucket, offset = self._places[i]
            shape = self._parameters_reduced[i].shape
            return self._buckets[bucket][offset : offset + shape.numel()].view(shape)

        def _arrival(self, i: int) -> Any:
            def arrives(gradient: torch.Tensor) -> Any:
                if self._rebuilds and self.require_backward_grad_sync:
                    self._arrived.append(i)
                return self._view(i) if self.gradient_as_bucket_view and self._parameters_reduced[i].grad is None else None

            return arrives

        def _broadcast(self, tensors: list[torch.Tensor]) -> None:
            """Flat copies are sent, and copied back."""
            under_way: list[torch.Tensor] = []
            tensors = [tensor for tensor in tensors if tensor.is_cuda]
            for bucket in assignment(tensors, [BROADCAST]):
                first = tensors[bucket[0]]
                flat = torch.empty(sum(tensors[i].numel() for i in bucket), dtype=first.dtype, device=first.device)
                under_way = [*under_way[-1:], flat]

    return DistributedDataParallel
