"""`nn.DataParallel` on pretended GPUs: the copies between them, and replicas that run one after the other.

The flattened buckets are those of PyTorch: parameters are sent in buckets of 10 MiB, and gradients come back in
buckets whose reduced sum stays on the first GPU, one more copy of all gradients at the end of backward.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Optional, Sequence

import torch
from torch.nn.parallel import comm

from .patches import Patches
from .quiet import unseen

if TYPE_CHECKING:
    from .functions import ScriptView
    from .session import Session

BUCKET = 10_485_760


def install(session: "Session", patches: Patches) -> None:
    copies = Copies(session.view)
    for name in ("broadcast", "broadcast_coalesced", "reduce_add", "scatter", "gather"):
        patches.set(comm, name, getattr(copies, name))
    apply = _apply_in_turn(session)
    # by name, because the package has functions of the same names as its modules
    for module in ("torch.nn.parallel", "torch.nn.parallel.parallel_apply", "torch.nn.parallel.data_parallel"):
        patches.set_where_present(sys.modules[module], "parallel_apply", apply)
    patches.set_where_present(sys.modules["torch.nn.parallel._functions"], "_get_stream", lambda device: None)


class Copies:
    """The communication between GPUs of one process."""

    def __init__(self, view: "ScriptView") -> None:
        self.view = view

    def _index(self, device: Any) -> int:
        index = self.view.gpu_index(device)
        return 0 if index is None else index

    def _device(self, tensor: torch.Tensor) -> Optional[int]:
        with unseen():
            return self.view.memory.storages.device(tensor)

    def broadcast(self, tensor: torch.Tensor, devices: Optional[Sequence[Any]] = None, *, out: Any = None) -> Any:
        if out is not None:
            return tuple(out)
        return tuple(self.view.move(tensor, self._index(device), None) for device in devices or ())

    def broadcast_coalesced(self, tensors: Sequence[torch.Tensor], devices: Sequence[Any], buffer_size: int = BUCKET) -> Any:
        """The first GPU's replica has the tensors themselves; the others views of buckets."""
        results: list[list[torch.Tensor]] = [list(tensors)] + [[] for _ in devices[1:]]
        for bucket in _buckets(list(tensors), buffer_size):
            flat = bucket[0].reshape(-1) if len(bucket) == 1 else torch.cat([tensor.reshape(-1) for tensor in bucket])
            for result, device in zip(results[1:], devices[1:]):
                copy = self.view.move(flat, self._index(device), None, copy=True)
                pieces = copy.split([tensor.numel() for tensor in bucket])
                result.extend(piece.view(tensor.shape) for piece, tensor in zip(pieces, bucket))
        return results

    def reduce_add(self, inputs: Sequence[torch.Tensor], destination: Any = None) -> torch.Tensor:
        """The sum is written beside what is summed, as NCCL's reduction does it."""
        index = self._index(destination)
        root = next((tensor for tensor in inputs if self._device(tensor) == index), None)
        if root is None:
            return self.view.move(inputs[0], index, None, copy=True)
        return inputs[0] if len(inputs) == 1 else torch.empty_like(root)

    def scatter(
        self, tensor: torch.Tensor, devices: Optional[Sequence[Any]] = None, chunk_sizes: Optional[Sequence[int]] = None,
        dim: int = 0, streams: Any = None, *, out: Any = None,
    ) -> Any:
        devices = list(devices or ())
        chunks = tensor.split(list(chunk_sizes), dim) if chunk_sizes else tensor.chunk(len(devices), dim)
        return tuple(self.view.move(chunk, self._index(device), None) for chunk, device in zip(chunks, devices))

    def gather(self, tensors: Sequence[torch.Tensor], dim: int = 0, destination: Any = None, *, out: Any = None) -> torch.Tensor:
        """One result on the first GPU, into which every part is copied."""
        index = self._index(destination)
        shape = list(tensors[0].shape)
        shape[dim] = sum(tensor.shape[dim] for tensor in tensors)
        with self.view.requesting(index), unseen():
            return torch.empty(shape, dtype=tensors[0].dtype, device="meta")


def _buckets(tensors: list[torch.Tensor], size: int) -> list[list[torch.Tensor]]:
    """Tensors of one type together, in their order, until a bucket is full."""
    finished: list[list[torch.Tensor]] = []
    filling: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        bucket = filling.setdefault(tensor.dtype, [])
        bucket.append(tensor)
        if sum(item.numel() * item.element_size() for item in bucket) >= size:
            finished.append(filling.pop(tensor.dtype))
    return finished + list(filling.values())


def _apply_in_turn(session: "Session") -> Any:
    def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
        kwargs_tup = kwargs_tup or [{}] * len(modules)
        results = []
        for position, (module, args, kwargs) in enumerate(zip(modules, inputs, kwargs_tup)):
            device = position if devices is None else session.view.gpu_index(devices[position])
            before, session.memory.current_device = session.memory.current_device, device or 0
            try:
                args = args if isinstance(args, (list, tuple)) else (args,)
                results.append(module(*args, **kwargs))
            finally:
                session.memory.current_device = before
        return results

    return parallel_apply
