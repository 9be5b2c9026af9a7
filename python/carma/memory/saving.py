"""Tensors without values in files: `torch.save`, `pickle` and safetensors keep their shapes, devices and known values.

A file of a dry run is a real one. Host tensors are in it as they are. A stand-in is a small record of its storage, which
`torch.load` makes into a stand-in again; in a safetensors file its values are a hole (zeros that take no room on the disk).
"""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any, Optional

import torch

from . import constants
from .dispatch import PLAIN_META
from .events import BUFFER, WEIGHT
from .patches import Patches
from .quiet import unseen
from .storages import HOST, storage_of

if TYPE_CHECKING:
    from .session import Session

_session: Optional["Session"] = None


def install(session: "Session", patches: Patches) -> None:
    global _session
    _session = session

    def forget() -> None:
        global _session
        _session = None

    session.closers.append(forget)
    _reduction(session, patches)
    allow = getattr(torch.serialization, "add_safe_globals", None)  # files are loaded with few functions allowed since PyTorch 2.6
    if allow is not None:
        allow([restored])
    else:
        _allow_before_2_4()
    save = torch.save

    def save_unseen(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        with unseen():
            if isinstance(f, (str, os.PathLike)):
                with open(f, "wb") as file:  # by Python, so that it goes to the scratch folder
                    save(obj, file, *args, **kwargs)
            else:
                save(obj, f, *args, **kwargs)

    patches.set(torch, "save", save_unseen)


def _allow_before_2_4() -> None:
    try:
        from torch._weights_only_unpickler import _get_allowed_globals
    except ImportError:
        return
    _get_allowed_globals()[f"{restored.__module__}.{restored.__name__}"] = restored


def _reduction(session: "Session", patches: Patches) -> None:
    reduce = torch.Tensor.__reduce_ex__

    def reduce_ex(self: torch.Tensor, protocol: Any) -> Any:
        with unseen():
            record = session.storages.find(self) if type(self) is torch.Tensor else None
            if record is None:
                return reduce(self, protocol)
            values = constants.known(session.storages, self)
            place = (tuple(self.shape), self.stride(), self.storage_offset())
            facts = (storage_of(self)._cdata, record.size, record.device, self.dtype, *place)
            return restored, (*facts, self.requires_grad, None if values is None else values.clone())

    patches.set(torch.Tensor, "__reduce_ex__", reduce_ex)


def restored(
    key: int, size: int, device: int, dtype: torch.dtype, shape: Any, stride: Any, offset: int, requires_grad: bool, values: Any,
) -> torch.Tensor:
    """Called by pickle when it reads such a file."""
    session = _session
    if session is None:
        return torch.empty_strided(shape, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)
    with unseen():
        place = session.placement.of_stand_in(device)
        if place is None and values is not None:
            return values.requires_grad_(requires_grad)
        whole = session.placement.stand_ins.get((key, place))
        if whole is None or storage_of(whole).nbytes() != size:
            whole = _new_storage(session, size, place, dtype)
            if session.placement.is_loading:  # tensors of one storage share it again
                session.placement.stand_ins[key, place] = whole
        tensor = torch.empty(0, dtype=dtype, device="meta").set_(storage_of(whole), offset, shape, stride) if dtype != whole.dtype \
            else whole.as_strided(shape, stride, offset)
        if values is not None:
            record = session.storages.find(whole)
            if record is not None and record.constant is None:
                constants.remember(record, values, tensor)
        return tensor.requires_grad_(requires_grad)


def _new_storage(session: "Session", size: int, place: Optional[int], dtype: torch.dtype) -> torch.Tensor:
    elements = size // torch.empty((), dtype=dtype).element_size()
    with session.view.requesting(PLAIN_META):
        whole = torch.empty(elements, dtype=dtype, device="meta")
    session.storages.follow(whole, HOST if place is None else place, WEIGHT if place is None else BUFFER)
    return whole


# -- safetensors

_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
    torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}
for _name, _short in (("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2"), ("uint16", "U16"), ("uint32", "U32"), ("uint64", "U64")):
    if hasattr(torch, _name):
        _NAMES[getattr(torch, _name)] = _short


def write_safetensors(session: "Session", tensors: dict[str, torch.Tensor], file: Any, metadata: Optional[dict[str, str]]) -> None:
    """The format is a length, a header in JSON, and the values one after the other."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    position = 0
    with unseen():
        for name, tensor in tensors.items():
            size = tensor.numel() * tensor.element_size()
            header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [position, position + size]}
            position += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        begin = 8 + len(text)
        file.write(len(text).to_bytes(8, "little") + text)
        for name, tensor in tensors.items():
            values = constants.known(session.storages, tensor) if tensor.is_meta else tensor
            if values is not None and values.numel():
                file.seek(begin + header[name]["data_offsets"][0])
                file.write(values.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        file.seek(begin + position)
        file.truncate()
        if isinstance(file, io.BytesIO):
            file.write(b"\0" * (begin + position - len(file.getvalue())))


def install_safe_open(session: "Session", patches: Patches, module: Any) -> None:
    """For `safetensors`, once it is imported."""
    real = module.safe_open

    def safe_open(filename: Any, framework: str, device: Any = "cpu", *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(session.to_read(filename))
        index = session.view.gpu_index(device)
        if index is None:
            return real(path, framework, device, *args, **kwargs)
        return _OnGpu(real(path, framework, "cpu", *args, **kwargs), session, index)

    patches.set(module, "safe_open", safe_open)


def install_safetensors(session: "Session", patches: Patches, module: Any) -> None:
    """For `safetensors.torch`, once it is imported."""
    from safetensors import safe_open

    def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
        with open(filename, "wb") as file:
            write_safetensors(session, tensors, file, metadata)

    def save(tensors: Any, metadata: Any = None) -> bytes:
        file = io.BytesIO()
        write_safetensors(session, tensors, file, metadata)
        return file.getvalue()

    def save_model(model: Any, filename: Any, metadata: Any = None, *_: Any, **__: Any) -> None:
        save_file(dict(model.state_dict()), filename, metadata)

    def load_file(filename: Any, device: Any = "cpu", *_: Any, **__: Any) -> Any:
        with safe_open(filename, "pt", device) as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    functions = {"save_file": save_file, "save": save, "save_model": save_model, "safe_open": safe_open, "load_file": load_file}
    for name, function in functions.items():
        patches.set(module, name, function)


class _OnGpu:
    """An open safetensors file whose tensors go to a GPU."""

    def __init__(self, file: Any, session: "Session", index: int) -> None:
        self._file, self._session, self._index = file, session, index

    def __enter__(self) -> "_OnGpu":
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        return self._session.view.move(self._file.get_tensor(name), self._index, None)

    def get_slice(self, name: str) -> Any:
        return _SliceOnGpu(self._file.get_slice(name), self._session, self._index)


class _SliceOnGpu:
    def __init__(self, part: Any, session: "Session", index: int) -> None:
        self._part, self._session, self._index = part, session, index

    def __getitem__(self, where: Any) -> torch.Tensor:
        return self._session.view.move(self._part[where], self._index, None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)
