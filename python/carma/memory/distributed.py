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

from .events import GRADIENT
from .patches import Patches

if TYPE_CHECKING:
    from .session import Session

MIB = 1 << 20
FIRST_BUCKET = MIB
BUCKET_MIB = 25


class Work:
    """A collective that is done."""

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def get_future(self) -> Any:
        future: Any = torch.futures.Future()
        future.set_result([])
        return future


class Group:
    """All ranks, of which this process is the first."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.group_name = "default"

    def size(self) -> int:
        return self.ranks

    def rank(self) -> int:
        return 0


def install(session: "Session", patches: Patches) -> None:
    if not torch.distributed.is_available():
        return
    state = {"ranks": 0}
    module = torch.distributed

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        ranks = int(kwargs.get("world_size", -1))
        state["ranks"] = ranks if ranks > 0 else int(os.environ.get("WORLD_SIZE", session.devices))

    def ranks_of(group: Any = None) -> int:
        return group.ranks if isinstance(group, Group) else max(1, state["ranks"])

    def collective(*args: Any, async_op: bool = False, **kwargs: Any) -> Any:
        return Work() if async_op else None

    def all_gather(tensor_list: Any, tensor: torch.Tensor, group: Any = None, async_op: bool = False) -> Any:
        for target in tensor_list:
            target.copy_(tensor)
        return Work() if async_op else None

    def all_gather_object(objects: list[Any], value: Any, group: Any = None) -> None:
        objects[:] = [value] * len(objects)

    def broadcast_object_list(objects: list[Any], *_: Any, **__: Any) -> None:
        return None

    def gather_object(value: Any, objects: Any = None, *_: Any, **__: Any) -> None:
        if objects is not None:
            objects[:] = [value] * len(objects)

    def destroy(*_: Any, **__: Any) -> None:
        state["ranks"] = 0

    answers: dict[str, Any] = {
        "init_process_group": init_process_group,
        "is_initialized": lambda: state["ranks"] > 0,
        "get_rank": lambda group=None: 0,
        "get_node_local_rank": lambda *_: 0,
        "get_world_size": ranks_of,
        "get_backend": lambda group=None: "nccl",
        "is_nccl_available": lambda: True,
        "new_group": lambda ranks=None, *_, **__: Group(len(ranks) if ranks else ranks_of()),
        "destroy_process_group": destroy,
        "all_gather": all_gather,
        "all_gather_object": all_gather_object,
        "broadcast_object_list": broadcast_object_list,
        "gather_object": gather_object,
        "barrier": collective,
        "monitored_barrier": collective,
    }
    for name in ("all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "_all_gather_base", "reduce_scatter", "gather", "scatter",
                 "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "send", "recv", "isend", "irecv"):
        answers[name] = collective
    for name, answer in answers.items():
        patches.set_where_present(module, name, answer)
        patches.set_where_present(module.distributed_c10d, name, answer)
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
