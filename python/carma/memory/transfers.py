"""Moves between host memory and GPUs: `.to`, `.cuda`, `.cpu` and `.type_as` in all their forms."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Optional

import torch

from . import constants
from .dispatch import PLAIN_META, MemoryMode, kind_of_moved
from .events import WEIGHT
from .outputs import tensors_in
from .quiet import unseen
from .storages import HOST

Tensor = torch.Tensor


STAND_IN_FROM = 1 << 20
"""Elements from which a copy in host memory is a stand-in: parameters and states that are offloaded, not results to look at."""


def _tracks_gradient(tensor: Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()


class Transfers:
    """Translates the devices that a script names, and copies its tensors between them."""

    def __init__(self, memory: MemoryMode) -> None:
        super().__init__()
        self.memory = memory

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

    def device_of(self, tensor: Tensor) -> torch.device:
        """The device that the script sees."""
        device = self.memory.storages.device(tensor)
        if device is None:
            return Tensor.device.__get__(tensor)
        return torch.device("cpu") if device == HOST else torch.device("cuda", device)

    @contextmanager
    def requesting(self, device: int, kind: Optional[str] = None) -> Iterator[None]:
        memory = self.memory
        before = memory.requested_device, memory.moved
        memory.requested_device, memory.moved = device, kind or memory.moved
        try:
            yield
        finally:
            memory.requested_device, memory.moved = before

    def move(self, tensor: Tensor, index: int, dtype: Optional[torch.dtype], copy: bool = False, memory_format=None) -> Tensor:
        """A tensor on the GPU of that number; the tensor itself when it is there already."""
        with unseen():
            origin = self.memory.storages.device(tensor)
        if origin == index and not copy and (dtype is None or dtype == tensor.dtype):
            return tensor if memory_format is None else tensor.to(memory_format=memory_format)
        kwargs: dict[str, Any] = {"device": torch.device("meta")}
        if dtype is not None:
            kwargs["dtype"] = dtype
        if memory_format is not None:
            kwargs["memory_format"] = memory_format
        with self.requesting(index, kind_of_moved(tensor)), unseen():
            result = torch.ops.aten._to_copy.default(tensor, **kwargs)
            if result.requires_grad and origin is not None and origin != index:
                self._return_gradient(result, origin)
            return result

    def to_host(self, tensor: Tensor, dtype: Optional[torch.dtype] = None) -> Tensor:
        device = self.memory.storages.device(tensor)
        if device is None or device == HOST:
            return tensor if dtype is None else tensor.to(dtype)
        is_large = tensor.numel() >= STAND_IN_FROM and not _tracks_gradient(tensor)
        if self.memory.moved is not None or is_large:  # a whole module goes back: its parameters keep their identity
            with self.requesting(HOST):
                return torch.empty_like(tensor.detach(), dtype=dtype or tensor.dtype)
        if _tracks_gradient(tensor):
            return _ToHost.apply(tensor, dtype, self)
        return constants.to_host(self.memory.storages, tensor.detach(), dtype)

    def return_gradients_of_numbers(self, operands: Any) -> None:
        """Numbers in host memory that went into an operator on a GPU get their gradients in host memory."""
        for tensor in tensors_in(operands):
            is_number = tensor.dim() == 0 and tensor.requires_grad and self.memory.storages.device(tensor) == HOST
            if is_number and not hasattr(tensor, "_returns_gradient"):
                tensor._returns_gradient = True
                self._return_gradient(tensor, HOST)

    def _return_gradient(self, tensor: Tensor, origin: int) -> None:
        """Sends the gradient where it belongs. Autograd does so by devices, and sees one device here: `meta`."""

        def returned(gradient: Tensor) -> Tensor:
            with unseen(), self.requesting(origin):
                return torch.ops.aten._to_copy.default(gradient, device=torch.device("meta"))

        tensor.register_hook(returned)

    # -- methods of tensors and modules

    def parse_to(self, args: Any, kwargs: Any) -> Any:
        """The arguments of `.to`, of a tensor or a module: device, dtype, non_blocking and memory format.

        PyTorch's parser is asked with devices of the script. It would take another tensor's own device, `meta`,
        and a number for a GPU only where it finds one.
        """
        args, kwargs = list(args), dict(kwargs)
        if args and isinstance(args[0], Tensor):
            args[:1] = [self.device_of(args[0]), args[0].dtype]
        elif not args and isinstance(kwargs.get("tensor"), Tensor):
            other = kwargs.pop("tensor")
            kwargs.update(device=self.device_of(other), dtype=other.dtype)
        if args:
            args[0] = _numbered(args[0])
        if "device" in kwargs:
            kwargs["device"] = _numbered(kwargs["device"])
        return torch._C._nn._parse_to(*args, **kwargs)

    def to(self, args: Any, kwargs: Any) -> Tensor:
        tensor, rest = args[0], list(args[1:])
        kwargs = dict(kwargs)
        copy = kwargs.pop("copy", False)
        if len(rest) > 3 or (len(rest) == 3 and isinstance(rest[0], (torch.dtype, Tensor))):
            copy = rest.pop()
        device, dtype, _, memory_format = self.parse_to(rest, kwargs)
        if device is None:
            return tensor.to(dtype or tensor.dtype, copy=copy, **({} if memory_format is None else {"memory_format": memory_format}))
        index = self.gpu_index(device)
        if index is not None:
            return self.move(tensor, index, dtype, copy, memory_format)
        if device.type == "cpu" and Tensor.is_meta.__get__(tensor):
            return self.to_host(tensor, dtype)
        if device.type == "meta":
            return self._without_memory(tensor, dtype, copy)
        return tensor.to(device=device, dtype=dtype or tensor.dtype, copy=copy)

    def _without_memory(self, tensor: Tensor, dtype: Optional[torch.dtype], copy: bool) -> Tensor:
        """On `meta` by the script's own wish. PyTorch would not copy a stand-in, which is on `meta` already."""
        with self.requesting(PLAIN_META):
            if self.memory.storages.device(tensor) is not None:
                return torch.empty_like(tensor.detach(), dtype=dtype or tensor.dtype)
            return tensor.to(device="meta", dtype=dtype or tensor.dtype, copy=copy)

    def set_data(self, args: Any, kwargs: Any) -> None:
        """`tensor.data = value`: one in host memory must be a stand-in where the tensor is one, and the other way round."""
        tensor, value = args[0], args[1]
        if isinstance(tensor, torch.nn.Parameter):
            self.memory.phases.own.weight_written()
        if isinstance(value, Tensor) and value.is_meta and not tensor.is_meta and hasattr(torch._C, "_swap_tensor_impl"):
            torch._C._swap_tensor_impl(tensor, value.detach())
            return
        Tensor.data.__set__(tensor, self._alike(tensor, value))

    def set_gradient(self, args: Any, kwargs: Any) -> None:
        Tensor.grad.__set__(args[0], self._alike(args[0], args[1]))

    def _alike(self, tensor: Tensor, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.is_meta or not tensor.is_meta or value.layout != torch.strided:
            return value
        with self.requesting(PLAIN_META):
            stand_in = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        constants.remember(self.memory.storages.follow(stand_in, HOST, WEIGHT), value, stand_in)
        return stand_in

    def type_as(self, args: Any, kwargs: Any) -> Tensor:
        other = args[1] if len(args) > 1 else kwargs["other"]
        return self.to((args[0], other), {})

    def cuda(self, args: Any, kwargs: Any) -> Tensor:
        tensor = args[0]
        named = args[1] if len(args) > 1 else kwargs.get("device")
        index = self.memory.current_device if named is None else self.gpu_index(named)
        return self.move(tensor, self.memory.current_device if index is None else index, None)

    def cpu(self, args: Any, kwargs: Any) -> Tensor:
        return self.to_host(args[0])


class _ToHost(torch.autograd.Function):
    """A copy to host memory whose gradient goes to the GPU."""

    @staticmethod
    def forward(ctx, tensor, dtype, transfers):
        ctx.transfers, ctx.dtype = transfers, tensor.dtype
        with unseen():
            ctx.origin = transfers.memory.storages.device(tensor)
            return constants.to_host(transfers.memory.storages, tensor.detach(), dtype)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.transfers.move(gradient, ctx.origin, ctx.dtype), None, None


def _numbered(device: Any) -> Any:
    """A number names a GPU."""
    return torch.device("cuda", device) if isinstance(device, int) and not isinstance(device, bool) else device
