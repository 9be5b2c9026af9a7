"""`torch.load`: tensors are read into host memory, then placed where `map_location` says or where they were saved from."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Optional

import torch

from .events import BUFFER
from .patches import Patches
from .quiet import unseen
from .storages import HOST

if TYPE_CHECKING:
    from .session import Session


def install(session: "Session", patches: Patches) -> None:
    load = torch.load
    placement = session.placement = Placement(session)

    @functools.wraps(load)
    def load_and_place(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        before, placement.map_location = placement.map_location, map_location
        placement.asked = map_location
        placement.is_loading = True
        try:
            with unseen():
                return load(session.to_read(f) if isinstance(f, (str, os.PathLike)) else f, placement.in_host_memory, *args, **kwargs)
        finally:
            placement.map_location = placement.asked = before
            placement.is_loading = False
            placement.forget()

    legacy = torch.serialization._legacy_load

    def load_legacy(*args: Any, **kwargs: Any) -> Any:
        """Before PyTorch 1.6 the values came after the tensors: those are left in host memory."""
        placement.map_location = "cpu"
        return legacy(*args, **kwargs)

    patches.set(torch, "load", load_and_place)
    patches.set(torch.serialization, "_legacy_load", load_legacy)
    rebuild = torch._utils._rebuild_tensor
    patches.set(torch._utils, "_rebuild_tensor", lambda *args: placement.rebuilt(rebuild, *args))


class Placement:
    """Where the storages of a checkpoint go."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.map_location: Any = None
        self.asked: Any = None
        self.is_loading = False
        self.stand_ins: dict[tuple[int, Optional[int]], torch.Tensor] = {}
        self._gpus: dict[int, int] = {}
        self._placed: dict[int, tuple[Any, torch.Tensor]] = {}

    def forget(self) -> None:
        self._gpus.clear()
        self._placed.clear()
        self.stand_ins.clear()

    def in_host_memory(self, storage: Any, location: str) -> Any:
        """Called by `torch.load` with each storage."""
        index = self._gpu(storage, location)
        if index is not None:
            self._gpus[storage.data_ptr()] = index
        return storage

    def rebuilt(self, rebuild: Any, storage: Any, offset: int, size: Any, stride: Any) -> torch.Tensor:
        """A tensor of a storage; tensors of one storage share it on the GPU too."""
        untyped = storage._untyped_storage if hasattr(storage, "_untyped_storage") else storage._storage
        key = untyped.data_ptr()
        index = self._gpus.get(key)
        if index is None:
            return rebuild(storage, offset, size, stride)
        if key not in self._placed:
            whole = rebuild(storage, 0, (untyped.nbytes() // torch._utils._element_size(storage.dtype),), (1,))
            view = self._session.view
            with view.requesting(index, BUFFER):
                self._placed[key] = storage, view.move(whole, index, None)  # a storage that is gone would leave its address to another
        return self._placed[key][1].as_strided(size, stride, offset)

    def of_stand_in(self, device: int) -> Optional[int]:
        """The GPU that a stand-in in a file goes to, which was on a device of `storages`; None for host memory."""
        return self._place(None, "cpu" if device == HOST else f"cuda:{device}", self.asked)

    def _gpu(self, storage: Any, location: str) -> Optional[int]:
        return self._place(storage, location, self.map_location)

    def _place(self, storage: Any, location: str, wanted: Any) -> Optional[int]:
        if isinstance(wanted, dict):
            wanted = wanted.get(location, location)
        elif callable(wanted):
            wanted = _asked(wanted, storage, location)
        index = self._session.view.gpu_index(location if wanted is None else wanted)
        if index is None or index < self._session.devices:
            return index
        return self._session.memory.current_device


class _Probe:
    """Stands for a storage, so that a function can say where it goes: `lambda storage, location: storage.cuda(1)`."""

    def __init__(self) -> None:
        self.place: Any = "cpu"

    def cuda(self, device: Any = None, **_: Any) -> "_Probe":
        self.place = "cuda" if device is None else device
        return self

    def cpu(self) -> "_Probe":
        self.place = "cpu"
        return self

    def to(self, device: Any = "cpu", **_: Any) -> "_Probe":
        self.place = device
        return self


def _asked(function: Any, storage: Any, location: str) -> Any:
    """A function that answers None leaves a storage where it was saved from."""
    try:
        answer = function(_Probe(), location)
    except Exception:  # it wants a real storage
        answer = function(storage, location)
    if isinstance(answer, _Probe):
        return answer.place
    return None if answer is None else "cpu"
