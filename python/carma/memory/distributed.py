"""`torch.distributed` for one process that stands for the rank 0 of many.

Collectives leave their tensors as they are. DistributedDataParallel keeps its flat buckets of gradients: a first of
1 MiB, then 25 MiB each, one more copy of the gradients unless they are views of the buckets.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator

import torch
import torch.distributed
from torch import nn

from .collectives import collectives
from .events import GRADIENT
from .patches import Patches
from .process_groups import FakeProcessGroup, RealGroups, StandInGroups

if TYPE_CHECKING:
    from .session import Session

MIB = 1 << 20
FIRST_BUCKET = MIB
BUCKET_MIB = 25


def install(session: "Session", patches: Patches) -> None:
    if not torch.distributed.is_available():
        return
    peers = RealGroups(session) if FakeProcessGroup is not None else StandInGroups(session)
    for name, answer in {**peers.answers(), **collectives()}.items():
        for module in (torch.distributed, torch.distributed.distributed_c10d):
            patches.set_where_present(module, name, answer)
    patches.on_undo(peers.close)
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0")):
        if name in os.environ:
            os.environ[name] = value  # a launcher's other ranks would do the same work
    _install_ddp(session, patches)


def _install_ddp(session: "Session", patches: Patches) -> None:
    stand_in = stand_in_for(nn.parallel.DistributedDataParallel, session)
    patches.set(nn.parallel, "DistributedDataParallel", stand_in)
    patches.set(nn.parallel.distributed, "DistributedDataParallel", stand_in)


def stand_in_for(original: type, session: "Session") -> type:
    class DistributedDataParallel(original):  # type: ignore[valid-type, misc]
        """The wrapped module, and the memory of the gradient buckets. A subclass, for `isinstance`."""

        def __init__(
            self, module: nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0, broadcast_buffers: bool = True,
            process_group: Any = None, bucket_cap_mb: Any = None, find_unused_parameters: bool = False, check_reduction: bool = False,
            gradient_as_bucket_view: bool = False, static_graph: bool = False, **_: Any,
        ) -> None:
            nn.Module.__init__(self)
            self.module = module
            self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
            self.device = next(iter(module.parameters())).device
            self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
            self.gradient_as_bucket_view = gradient_as_bucket_view
            self.require_backward_grad_sync = True
            self.process_group = process_group
            self._hooks = []
            self._buckets = self._make_buckets((bucket_cap_mb or BUCKET_MIB) * MIB)

        def forward(self, *inputs: Any, **kwargs: Any) -> Any:
            return self.module(*inputs, **kwargs)

        @contextmanager
        def no_sync(self) -> Iterator[None]:
            yield

        def register_comm_hook(self, *_: Any, **__: Any) -> None:
            return None

        def _set_static_graph(self) -> None:
            self.static_graph = True

        def __getstate__(self) -> Any:
            return dict(self.__dict__)

        def __setstate__(self, state: Any) -> None:
            self.__dict__.update(state)

        def _make_buckets(self, limit: int) -> list[torch.Tensor]:
            """Gradients become ready from the last layer on, which is the order of the buckets."""
            buckets: list[list[nn.Parameter]] = [[]]
            filled, room = 0, FIRST_BUCKET
            for parameter in reversed([p for p in self.module.parameters() if p.requires_grad]):
                buckets[-1].append(parameter)
                filled += parameter.numel() * parameter.element_size()
                if filled >= room:
                    buckets.append([])
                    filled, room = 0, limit
            return [self._make_bucket(bucket) for bucket in buckets if bucket]

        def _make_bucket(self, parameters: list[nn.Parameter]) -> torch.Tensor:
            flat = torch.empty(sum(p.numel() for p in parameters), dtype=parameters[0].dtype, device=parameters[0].device)
            session.storages.reclassify(flat, GRADIENT)
            if self.gradient_as_bucket_view:
                offset = 0
                for parameter in parameters:
                    self._hooks.append(parameter.register_hook(_into(flat, offset, parameter.shape)))
                    offset += parameter.numel()
            return flat

    return DistributedDataParallel


def _into(flat: torch.Tensor, offset: int, shape: torch.Size) -> Any:
    def hook(gradient: torch.Tensor) -> torch.Tensor:
        return flat[offset : offset + shape.numel()].view(shape)

    return hook
