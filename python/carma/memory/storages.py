"""Which storages are alive on which pretended GPU. Views share a storage, so they never count."""

from __future__ import annotations

import threading
import weakref
from typing import Optional

import torch

from .events import TEMPORARY, WEIGHT, Trace

HOST = -1
"""Device of a tensor that the script believes to be in host memory, though it is on `meta`: parameters before `.cuda()`."""


SHARDED = (
    "parameters are gathered and freed layer by layer, on streams that do not share their free memory: "
    "the job can reserve more than estimated."
)


class Record:
    """One tracked storage."""

    __slots__ = ("assumed", "constant", "counts", "device", "guessed", "identity", "kind", "size", "uniform", "watch")

    def __init__(self, device: int, size: int, identity: int, kind: str, assumed: bool) -> None:
        self.device = device
        self.assumed = assumed  # made inside PyTorch, where the device of the script is not known
        self.size = size
        self.identity = identity
        self.kind = kind
        self.constant: Optional[torch.Tensor] = None  # the storage's values, flat, where they are known and few
        self.uniform: Optional[bool] = None  # the value of all elements, where that is known
        self.guessed = False  # it follows from plausible values
        self.counts = False  # a number of elements that meet a condition
        self.watch: object = None


_PLAIN = (torch.Tensor, torch.nn.Parameter)
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
        self.adopted = 0
        """Bytes of tensors, other than parameters, that were met only when an operator used them."""
        self._wrapper_lives_with_storage = _wrapper_lives_with_storage()
        self._collecting = threading.Lock()

    def find(self, tensor: torch.Tensor) -> Optional[Record]:
        if not tensor.is_meta:
            return None
        if type(tensor) not in _PLAIN:
            tensor = getattr(tensor, "_local_tensor", tensor)  # a part of a tensor that is spread over ranks
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
        size = storage.nbytes()
        if known is not None:
            if size > known.size:
                self._grown(known, size)
            return known
        identity = 0 if device == HOST or size == 0 else self.trace.allocate(size, kind, device)
        record = Record(device, size, identity, kind, assumed)
        self.records[storage._cdata] = record
        self._watch(storage, record)
        return record

    def _grown(self, record: Record, size: int) -> None:
        """`resize_`, or a result written into a tensor that was too small: a new allocation, then the old one is freed."""
        if record.device != HOST:
            before, record.identity = record.identity, self.trace.allocate(size, record.kind, record.device)
            if before:
                self.trace.free(before)
        record.size = size
        record.constant = record.uniform = None

    def adopt(self, tensor: torch.Tensor, device: int) -> None:
        """A tensor without a known device went into an operator on a GPU: it is on that GPU, and counts from now on.

        It was made where the tracer sees nothing, such as another thread.
        """
        kind = WEIGHT if isinstance(tensor, torch.nn.Parameter) else TEMPORARY
        try:
            record = self.follow(tensor, device, kind, assumed=True)
        except NotImplementedError:  # inside torch.func
            return
        if kind != WEIGHT:
            self.adopted += record.size

    def reclassify(self, tensor: torch.Tensor, kind: str) -> None:
        record = self.find(tensor)
        if record is not None and record.identity and record.kind != kind:
            record.kind = kind
            self.trace.reclassify(record.identity, kind)

    def live_bytes(self) -> dict[int, int]:
        """By GPU."""
        totals: dict[int, int] = {}
        for record in self.records.values():
            if record.device >= 0:
                totals[record.device] = totals.get(record.device, 0) + record.size
        return totals

    def resized(self, storage: torch.UntypedStorage) -> None:
        """A storage that was emptied or filled again while its tensors live on, as sharding libraries do."""
        record = self.records.get(storage._cdata)
        if record is None or record.size == storage.nbytes():
            return
        record.size, record.constant = storage.nbytes(), None
        if record.device == HOST:
            return
        if record.identity:
            self.trace.free(record.identity)
        record.identity = self.trace.allocate(record.size, record.kind, record.device) if record.size else 0
        if record.size:
            self.trace.note(SHARDED)

    def collect(self) -> None:
        """Notes frees where PyTorch cannot tell them by itself (before 2.1: storages have no lasting Python object)."""
        if self._wrapper_lives_with_storage:
            return
        if not self._collecting.acquire(blocking=False):
            return  # another thread of the script is at it: a reference must not be freed twice
        try:
            expired = torch.UntypedStorage._expired
            gone = [address for address, record in list(self.records.items()) if expired(record.watch)]
            for address in gone:
                torch.UntypedStorage._free_weak_ref(self.records[address].watch)
                self._forget(address)
        finally:
            self._collecting.release()

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
