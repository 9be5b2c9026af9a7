"""The script's view of its tensors: `meta` tensors that appear to be on a GPU, and calls that name a GPU as device."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch.overrides import TorchFunctionMode

from . import constants, cuda_kernels, value_checks
from .autocast import Autocast
from .dispatch import PLAIN_META, MemoryMode, kind_of_moved
from .storages import HOST
from .transfers import Transfers

Tensor = torch.Tensor

_TYPES = {
    torch.float32: "FloatTensor", torch.float64: "DoubleTensor", torch.float16: "HalfTensor", torch.bfloat16: "BFloat16Tensor",
    torch.int64: "LongTensor", torch.int32: "IntTensor", torch.int16: "ShortTensor", torch.int8: "CharTensor",
    torch.uint8: "ByteTensor", torch.bool: "BoolTensor",
}


class ScriptView(Transfers, TorchFunctionMode):
    """Translates between the devices of the script and those of the dry run."""

    def __init__(self, memory: MemoryMode) -> None:
        super().__init__(memory)
        self.autocast = Autocast()
        self.default_device: Optional[int] = None
        self.default_type_device: Optional[int] = None  # where `torch.Tensor(3, 4)` goes, which no function mode sees
        self._factories = _factories()
        self._rules: dict[Any, Callable[..., Any]] = {
            Tensor.device.__get__: self._device,
            Tensor.is_cuda.__get__: self._is_cuda,
            Tensor.is_meta.__get__: self._is_meta,
            Tensor.is_cpu.__get__: self._is_cpu,
            Tensor.get_device: self._get_device,
            Tensor.cuda: self.cuda,
            Tensor.cpu: self.cpu,
            Tensor.to: self.to,
            Tensor.type_as: self.type_as,
            Tensor.data.__set__: self.set_data,
            Tensor.grad.__set__: self.set_gradient,
            torch._C._nn._parse_to: self.parse_to,
            Tensor.numpy: self._numpy,
            Tensor.tolist: self._tolist,
            Tensor.type: self._type,
            Tensor.pin_memory: lambda args, kwargs: args[0],
            Tensor.is_pinned: lambda args, kwargs: False,
            Tensor.data_ptr: self._data_ptr,
        }
        self._rules[Tensor.__bool__] = self._truth(Tensor.__bool__)
        self._rules[Tensor.item] = self._item
        for name in ("__float__", "__int__", "__index__", "__complex__"):
            self._rules[getattr(Tensor, name)] = self._number(getattr(Tensor, name))
        self._kernels = {**cuda_kernels.replacements(memory), **value_checks.functions(memory)}

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
        result = func(*args, **kwargs)
        if self.memory.number_crossed:
            self.memory.number_crossed = False
            self.return_gradients_of_numbers((args, kwargs))
        return result

    # -- devices

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
            with self.requesting(index, self._kind_of_new(args)):
                return func(*args, **kwargs, device="meta")
        if torch.device(named).type == "meta":
            with self.requesting(PLAIN_META):
                return func(*args, **kwargs)
        kwargs = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        if args and isinstance(args[0], Tensor) and Tensor.is_meta.__get__(args[0]) and torch.device(named).type == "cpu":
            with self.requesting(HOST):  # `zeros_like` of a stand-in
                return func(*args, **{**kwargs, "device": "meta"})
        return func(*args, **kwargs)

    def _kind_of_new(self, args: Any) -> Optional[str]:
        """`Module.to_empty` makes its tensors anew from those that are there."""
        is_module_moved = self.memory.moved is not None and args and isinstance(args[0], Tensor)
        return kind_of_moved(args[0]) if is_module_moved else None

    def _data_on_gpu(self, func, args, kwargs, index: int):
        """`torch.tensor(data, device="cuda")`: made of data in host memory, then copied."""
        kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory")}
        requires_grad = kwargs.pop("requires_grad", False)
        data = args[0] if args else kwargs.pop("data", None)
        if isinstance(data, Tensor) and data.is_meta:
            return self.move(data, index, kwargs.get("dtype"), copy=func is torch.tensor)
        result = self.move(func(data, *args[1:], **kwargs), index, None)
        return result.requires_grad_() if requires_grad else result

    # -- attributes and methods

    def _device(self, args, kwargs):
        return self.device_of(args[0])

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

    def _truth(self, method: Callable[[Tensor], Any]) -> Callable[..., Any]:
        def convert(args, kwargs):
            tensor = args[0]
            record = self.memory.storages.find(tensor)
            if record is None:
                return method(tensor)
            answer = method(constants.to_host(self.memory.storages, tensor.detach()))
            is_known = not record.guessed and (record.constant is not None or record.uniform is not None)
            return answer if is_known or tensor.numel() != 1 else self.memory.branches.decide(answer)

        return convert

    def _item(self, args, kwargs):
        tensor = args[0]
        return self._rules[Tensor.__bool__](args, kwargs) if tensor.dtype == torch.bool and tensor.numel() == 1 else tensor.item()

    def _type(self, args, kwargs):
        tensor = args[0]
        if len(args) == 1 and "dtype" not in kwargs:
            device = self.memory.storages.device(tensor)
            if device is None:
                return tensor.type()
            return f"torch.{'' if device == HOST else 'cuda.'}{_TYPES.get(tensor.dtype, 'Tensor')}"
        target = args[1] if len(args) > 1 else kwargs["dtype"]
        if isinstance(target, type):
            target = f"{target.__module__}.{target.__name__}"
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
