"""What the script sees of its tensors: `meta` tensors that say they are on a GPU, and calls that name a GPU as device."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

import torch
from torch.overrides import TorchFunctionMode

from . import constants, cuda_kernels
from .autocast import Autocast
from .dispatch import PLAIN_META, MemoryMode, kind_of_moved
from .quiet import unseen
from .storages import HOST

Tensor = torch.Tensor

_TYPES = {
    torch.float32: "FloatTensor", torch.float64: "DoubleTensor", torch.float16: "HalfTensor", torch.bfloat16: "BFloat16Tensor",
    torch.int64: "LongTensor", torch.int32: "IntTensor", torch.int16: "ShortTensor", torch.int8: "CharTensor",
    torch.uint8: "ByteTensor", torch.bool: "BoolTensor",
}


class ScriptView(TorchFunctionMode):
    """Translates between the devices of the script and those of the dry run."""

    def __init__(self, memory: MemoryMode) -> None:
        super().__init__()
        self.memory = memory
        self.autocast = Autocast()
        self.default_device: Optional[int] = None
        self._factories = _factories()
        self._rules: dict[Any, Callable[..., Any]] = {
            Tensor.device.__get__: self._device,
            Tensor.is_cuda.__get__: self._is_cuda,
            Tensor.is_meta.__get__: self._is_meta,
            Tensor.is_cpu.__get__: self._is_cpu,
            Tensor.get_device: self._get_device,
            Tensor.cuda: self._cuda,
            Tensor.cpu: self._cpu,
            Tensor.to: self._to,
            Tensor.numpy: self._numpy,
            Tensor.tolist: self._tolist,
            Tensor.type: self._type,
            Tensor.pin_memory: lambda args, kwargs: args[0],
            Tensor.is_pinned: lambda args, kwargs: False,
            Tensor.data_ptr: self._data_ptr,
        }
        for name in ("__bool__", "__float__", "__int__", "__index__", "__complex__"):
            self._rules[getattr(Tensor, name)] = self._number(getattr(Tensor, name))
        self._kernels = cuda_kernels.replacements(memory)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rule = self._rules.get(func)
        if rule is not None:
            return rule(args, kwargs)
        if "device" in kwargs or (self.default_device is not None and func in self._factories):
            return self._named_device(func, args, kwargs)
        if kwargs.get("generator") is not None and any(t.is_meta for t in args[:1] if isinstance(t, Tensor)):
            kwargs = {**kwargs, "generator": None}
        name = getattr(func, "__name__", "")
        if torch.is_autocast_enabled():
            args, kwargs = self.autocast.operands(name, args, kwargs)
        kernel = self._kernels.get(name)
        if kernel is not None:
            return kernel(func, args, kwargs)
        return func(*args, **kwargs)

    # -- devices

    def gpu_index(self, device: Any) -> Optional[int]:
        """The GPU that a device names, or None for any other device."""
        if isinstance(device, bool) or device is None:
            return None
        if isinstance(device, int):
            return device
        if isinstance(device, str):
            device = torch.device(device)
        if device.type != "cuda":
            return None
        return self.memory.current_device if device.index is None else device.index

    @contextmanager
    def requesting(self, device: int, kind: Optional[str] = None) -> Iterator[None]:
        memory = self.memory
        before = memory.requested_device, memory.moved
        memory.requested_device, memory.moved = device, kind or memory.moved
        try:
            yield
        finally:
            memory.requested_device, memory.moved = before

    def _named_device(self, func, args, kwargs):
        named = kwargs.get("device")
        if named is None:
            if self.default_device is None or func not in self._factories:
                return func(*args, **kwargs)
            index: Optional[int] = self.default_device
        else:
            index = self.gpu_index(named)
        if index is not None:
            if func in (torch.tensor, torch.as_tensor, torch.asarray):
                return self._data_on_gpu(func, args, kwargs, index)
            kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory", "generator")}
            with self.requesting(index):
                return func(*args, **kwargs, device="meta")
        if torch.device(named).type == "meta":
            with self.requesting(PLAIN_META):
                return func(*args, **kwargs)
        kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        return func(*args, **kwargs)

    def _data_on_gpu(self, func, args, kwargs, index: int):
        """`torch.tensor(data, device="cuda")`: made of data in host memory, then copied."""
        kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory")}
        requires_grad = kwargs.pop("requires_grad", False)
        data = args[0] if args else kwargs.pop("data", None)
        if isinstance(data, Tensor) and data.is_meta:
            return self.move(data, index, kwargs.get("dtype"), copy=func is torch.tensor)
        result = self.move(func(data, *args[1:], **kwargs), index, None)
        return result.requires_grad_() if requires_grad else result

    def move(self, tensor: Tensor, index: int, dtype: Optional[torch.dtype], copy: bool = False, memory_format=None) -> Tensor:
        """A tensor on the GPU of that number; the tensor itself when it is there already."""
        with unseen():
            there = self.memory.storages.device(tensor) == index
        if there and not copy and (dtype is None or dtype == tensor.dtype):
            return tensor if memory_format is None else tensor.to(memory_format=memory_format)
        kwargs: dict[str, Any] = {"device": torch.device("meta")}
        if dtype is not None:
            kwargs["dtype"] = dtype
        if memory_format is not None:
            kwargs["memory_format"] = memory_format
        with self.requesting(index, kind_of_moved(tensor)), unseen():
            return torch.ops.aten._to_copy.default(tensor, **kwargs)

    def _to_host(self, tensor: Tensor, dtype: Optional[torch.dtype] = None) -> Tensor:
        device = self.memory.storages.device(tensor)
        if device is None or device == HOST:
            return tensor if dtype is None else tensor.to(dtype)
        if self.memory.moved is not None:  # a whole module goes back: its parameters keep their identity
            return self._host_stand_in(tensor.detach(), dtype)
        return constants.to_host(self.memory.storages, tensor.detach(), dtype)

    def _host_stand_in(self, tensor: Tensor, dtype: Optional[torch.dtype]) -> Tensor:
        with self.requesting(HOST):
            return torch.empty_like(tensor, dtype=dtype or tensor.dtype)

    # -- attributes and methods

    def _device(self, args, kwargs):
        device = self.memory.storages.device(args[0])
        if device is None:
            return Tensor.device.__get__(*args)
        return torch.device("cpu") if device == HOST else torch.device("cuda", device)

    def _is_cuda(self, args, kwargs):
        device = self.memory.storages.device(args[0])
        return device is not None and device >= 0

    def _is_meta(self, args, kwargs):
        return Tensor.is_meta.__get__(*args) and self.memory.storages.device(args[0]) is None

    def _is_cpu(self, args, kwargs):
        device = self.memory.storages.device(args[0])
        return Tensor.is_cpu.__get__(*args) or device == HOST

    def _get_device(self, args, kwargs):
        device = self.memory.storages.device(args[0])
        return -1 if device is None else device

    def _cuda(self, args, kwargs):
        tensor = args[0]
        named = args[1] if len(args) > 1 else kwargs.get("device")
        index = self.memory.current_device if named is None else self.gpu_index(named)
        return self.move(tensor, self.memory.current_device if index is None else index, None)

    def _cpu(self, args, kwargs):
        return self._to_host(args[0])

    def _to(self, args, kwargs):
        tensor, rest = args[0], list(args[1:])
        kwargs = dict(kwargs)
        copy = kwargs.pop("copy", False)
        other = kwargs.pop("other", None)
        if other is None and rest and isinstance(rest[0], Tensor):
            other = rest.pop(0)
        if other is not None:
            device = self.memory.storages.device(other)
            if device is None or device == HOST:
                target = "cpu" if device == HOST or not Tensor.is_meta.__get__(other) else "meta"
            else:
                target = torch.device("cuda", device)
            rest = [target, other.dtype]
        if rest and isinstance(rest[0], int) and not isinstance(rest[0], bool):
            rest[0] = torch.device("cuda", rest[0])
        if isinstance(kwargs.get("device"), int):
            kwargs["device"] = torch.device("cuda", kwargs["device"])
        if len(rest) > 3 or (len(rest) == 3 and isinstance(rest[0], torch.dtype)):
            copy = rest.pop()
        device, dtype, _, memory_format = torch._C._nn._parse_to(*rest, **kwargs)
        if device is None:
            return tensor.to(dtype or tensor.dtype, copy=copy, **({} if memory_format is None else {"memory_format": memory_format}))
        index = self.gpu_index(device)
        if index is not None:
            return self.move(tensor, index, dtype, copy, memory_format)
        if device.type == "cpu" and Tensor.is_meta.__get__(tensor):
            return self._to_host(tensor, dtype)
        if device.type == "meta":
            with self.requesting(PLAIN_META):
                return tensor.to(device=device, dtype=dtype or tensor.dtype, copy=copy)
        return tensor.to(device=device, dtype=dtype or tensor.dtype, copy=copy)

    def _numpy(self, args, kwargs):
        tensor = args[0]
        if self.memory.storages.device(tensor) is None:
            return tensor.numpy(*args[1:], **kwargs)
        return constants.to_host(self.memory.storages, tensor.detach()).numpy()

    def _tolist(self, args, kwargs):
        tensor = args[0]
        if self.memory.storages.device(tensor) is None:
            return tensor.tolist()
        return constants.to_host(self.memory.storages, tensor.detach()).tolist()

    def _number(self, method: Callable[[Tensor], Any]) -> Callable[..., Any]:
        def convert(args, kwargs):
            tensor = args[0]
            if self.memory.storages.device(tensor) is None:
                return method(tensor)
            return method(constants.to_host(self.memory.storages, tensor.detach()))

        return convert

    def _type(self, args, kwargs):
        tensor = args[0]
        if len(args) == 1 and "dtype" not in kwargs:
            device = self.memory.storages.device(tensor)
            if device is None:
                return tensor.type()
            return f"torch.{'' if device == HOST else 'cuda.'}{_TYPES.get(tensor.dtype, 'Tensor')}"
        target = args[1] if len(args) > 1 else kwargs["dtype"]
        if isinstance(target, str) and target.startswith("torch.cuda."):
            dtype = getattr(torch, target.rsplit(".", 1)[1]).dtype
            return self.move(tensor, self.memory.current_device, dtype)
        return tensor.type(*args[1:], **kwargs)

    def _data_ptr(self, args, kwargs):
        """Tensors with one storage must have one address: some libraries find shared weights by it."""
        tensor = args[0]
        record = self.memory.storages.find(tensor)
        if record is None:
            return tensor.data_ptr()
        return ((record.identity or id(record)) << 40) + tensor.storage_offset() * tensor.element_size()


def _factories() -> frozenset[Any]:
    try:
        from torch.utils._device import _device_constructors
    except ImportError:  # before 2.0 there is no default device either
        names = "empty zeros ones full rand randn randint arange linspace eye tensor as_tensor randperm".split()
        return frozenset(getattr(torch, name) for name in names)
    return frozenset(_device_constructors())
