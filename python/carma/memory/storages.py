"""Which storages are alive on which pretended GPU. Views share a storage, so they never count."""

from __future__ import annotations

import weakref
from typing import Optional

import torch

from .events import Trace

HOST = -1
"""Device of a tensor that the script believes to be in host memory, though it is on `meta`: parameters before `.cuda()`."""


class Record:
    """One tracked storage."""

    __slots__ = ("assumed", "constant", "device", "identity", "kind", "size", "watch")

    def __init__(self, device: int, size: int, identity: int, kind: str, assumed: bool) -> None:
        self.device = device
        self.assumed = assumed  # made inside PyTorch, where the device of the script is not known
        self.size = size
        self.identity = identity
        self.kind = kind
        self.constant: Optional[torch.Tensor] = None  # the storage's values, flat, where they are known and few
        self.watch: object = None


_HAS_UNTYPED = hasattr(torch.Tensor, "untyped_storage")  # not in PyTorch 1.13


def storage_of(tensor: torch.Tensor):
    """The storage of a tensor; of a sparse one that of its values."""
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    return tensor.untyped_storage() if _HAS_UNTYPED else tensor._storage()


class Storages:
    """All storages that are followed, by the address of their C++ object."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.records: dict[int, Record] = {}
        self._wrapper_lives_with_storage = _wrapper_lives_with_storage()

    def find(self, tensor: torch.Tensor) -> Optional[Record]:
        if not tensor.is_meta:
            return None
        try:
            return self.records.get(storage_of(tensor)._cdata)
        except NotImplementedError:  # a tensor inside torch.func: its operators are seen with the tensors it wraps
            return None

    def device(self, tensor: torch.Tensor) -> Optional[int]:
        record = self.find(tensor)
        return None if record is None else record.device

    def follow(self, tensor: torch.Tensor, device: int, kind: str, assumed: bool = False) -> Record:
        """Begins to follow the storage of a new tensor, which is an allocation unless it is in host memory."""
        storage = storage_of(tensor)
        known = self.records.get(storage._cdata)
        if known is not None:
            return known
        size = storage.nbytes()
        identity = 0 if device == HOST or size == 0 else self.trace.allocate(size, kind, device)
        record = Record(device, size, identity, kind, assumed)
        self.records[storage._cdata] = record
        self._watch(storage, record)
        return record

    def reclassify(self, tensor: torch.Tensor, kind: str) -> None:
        record = self.find(tensor)
        if record is not None and record.identity and record.kind != kind:
            record.kind = kind
            self.trace.reclassify(record.identity, kind)

    def collect(self) -> None:
        """Notes frees where PyTorch cannot tell them by itself (before 2.1: storages have no lasting Python object)."""
        if self._wrapper_lives_with_storage:
            return
        expired = torch.UntypedStorage._expired
        gone = [address for address, record in list(self.records.items()) if expired(record.watch)]
        for address in gone:
            torch.UntypedStorage._free_weak_ref(self.records[address].watch)
            self._forget(address)

    def close(self) -> None:
        """Stops watching without further events."""
        if not self._wrapper_lives_with_storage:
            for record in self.records.values():
                torch.UntypedStorage._free_weak_ref(record.watch)
        self.records.clear()

    def _watch(self, storage, record: Record) -> None:
        if self._wrapper_lives_with_storage:
            address = storage._cdata
            record.watch = weakref.ref(storage, lambda _: self._forget(address))
        else:
            record.watch = storage._weak_ref()

    def _forget(self, address: int) -> None:
        record = self.records.pop(address, None)
        if record is not None and record.identity:
            self.trace.free(record.identity)


def _wrapper_lives_with_storage() -> bool:
    """Whether a weak reference to a storage object lasts as long as the storage itself."""
    tensor = torch.empty(1, device="meta")
    watch = weakref.ref(storage_of(tensor))
    return watch() is not None
