"""Runs every operator on `meta` and notes what it allocates: the heart of the tracer."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import constants, convolutions, data_dependent, scratch_memory
from .events import ACTIVATION, INPUT, TEMPORARY, WEIGHT, Trace
from .phases import Phases
from .quiet import unseen
from .storages import HOST, Storages

aten = torch.ops.aten

MATRIX_PRODUCTS = {
    overload
    for name in ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "addbmm", "dot", "_addmm_activation", "linear_backward")
    if hasattr(aten, name)
    for overload in (getattr(getattr(aten, name), o) for o in getattr(aten, name).overloads() if "out" not in o)
}
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}

HOST_FACTORIES = {
    aten.empty.memory_format, aten.zeros.default, aten.ones.default, aten.full.default, aten.rand.default, aten.randn.default,
}
LARGE_IN_HOST_MEMORY = 64 << 20
"""Bytes from which a tensor in host memory is a stand-in: weights before they become parameters, data sets made up in memory."""

PLAIN_META = -2
"""Asked for by the script itself: a tensor on the real `meta` device, which takes no memory anywhere."""


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from tensors_in(value)


class MemoryMode(TorchDispatchMode):
    """Follows the storages of what operators return."""

    def __init__(self, trace: Trace, storages: Storages, phases: Phases) -> None:
        super().__init__()
        self.trace = trace
        self.storages = storages
        self.phases = phases
        self.requested_device: Optional[int] = None  # set while a call that names a device is running
        self.current_device = 0
        self.moved: Optional[str] = None  # kind of what is being moved to a GPU, when known
        self.overrides: dict[Any, Callable[..., Any]] = {
            aten.convolution.default: self._convolution,
            aten.convolution_backward.default: self._convolution_backward,
            aten._to_copy.default: self._to_copy,
            aten.copy_.default: self._copy,
        }
        self._known: set[Any] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with unseen():
            self.storages.collect()
            if func not in self._known:
                self._meet(func)
            override = self.overrides.get(func)
            if override is not None:
                return override(func, args, kwargs)
            return self.run(func, args, kwargs)

    def _meet(self, func: Any) -> None:
        """Rules are found by name at an operator's first use: libraries register theirs when they are imported."""
        self._known.add(func)
        rule = data_dependent.rule_of(str(func))
        if rule is not None:
            self.overrides[func] = lambda func, args, kwargs: rule(self, func, args, kwargs)

    def run(self, func, args, kwargs):
        """An operator without anything special: what it returns is new unless it shares a storage with what is known."""
        device = self.device_of(args, kwargs)
        if device == HOST:
            args, kwargs = self._as_host_stand_ins(args), self._as_host_stand_ins(kwargs)
        elif func in INDEXING and device is not None:
            args = self._indices_on_gpu(args)
        elif func in HOST_FACTORIES and device is None and self._is_large_in_host_memory(func, args, kwargs):
            result = func(*args, **{**kwargs, "device": torch.device("meta"), "pin_memory": False})
            self.storages.follow(result, HOST, WEIGHT)
            return result
        shadow = constants.before(self.storages, func, args, kwargs)
        result = func(*args, **kwargs)
        self.note(result, self._device_of_result(device, kwargs))
        if device is not None and device >= 0:
            if func in MATRIX_PRODUCTS:
                self.trace.matrix_product(device)
            scratch_memory.note(self.trace, func, args, device)
        constants.after(self.storages, func, args, result, shadow)
        return result

    def note(self, result: Any, device: Optional[int], kind: Optional[str] = None) -> None:
        if device is None or device == PLAIN_META:
            return
        for tensor in tensors_in(result):
            if tensor.is_meta:
                self.storages.follow(tensor, device, kind or self.kind())

    def kind(self) -> str:
        if self.moved is not None:
            return self.moved
        if self.requested_device is not None and not self.phases.computing:
            return INPUT  # made on the GPU by the script itself, between computations
        return ACTIVATION if self.phases.in_forward else TEMPORARY

    def device_of(self, args: Any, kwargs: Any) -> Optional[int]:
        """The GPU that an operator runs on: that of its first operand on one. Host operands do not decide beside a GPU's."""
        found = None
        for tensor in tensors_in((args, kwargs)):
            device = self.storages.device(tensor)
            if device is not None:
                if device >= 0:
                    return device
                found = device
        return found

    def _device_of_result(self, operand: Optional[int], kwargs: Any) -> Optional[int]:
        if self.requested_device is not None:
            return self.requested_device
        named = kwargs.get("device")
        if operand is None and named is not None and named.type == "meta":
            return self.current_device  # made inside PyTorch for an operand on the GPU: the script's own name their device
        return operand

    def _is_large_in_host_memory(self, func: Any, args: Any, kwargs: Any) -> bool:
        if self.requested_device is not None or (kwargs.get("device") or torch.device("cpu")).type != "cpu":
            return False
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        return math.prod(args[0]) * torch.empty((), dtype=dtype).element_size() >= LARGE_IN_HOST_MEMORY

    def _as_host_stand_ins(self, operands: Any) -> Any:
        """Work in host memory on stand-ins (a model tried out before it is moved) needs no real numbers either."""
        if isinstance(operands, torch.Tensor):
            if operands.is_meta or operands.dim() == 0:
                return operands
            stand_in = torch.empty_strided(operands.shape, operands.stride(), dtype=operands.dtype, device="meta")
            constants.remember(self.storages.follow(stand_in, HOST, WEIGHT), operands, stand_in)
            return stand_in
        if type(operands) in (list, tuple):
            return type(operands)(self._as_host_stand_ins(item) for item in operands)
        if isinstance(operands, dict):
            return {name: self._as_host_stand_ins(item) for name, item in operands.items()}
        return operands

    def _indices_on_gpu(self, args):
        """CUDA takes indices in host memory for a tensor on the GPU; `meta` does not."""
        indices = [
            index if index is None or index.is_meta else torch.empty_like(index, device="meta") for index in args[1]
        ]
        return (args[0], indices, *args[2:])

    # -- operators with a course of their own

    def _convolution(self, func, args, kwargs):
        device = self.device_of(args, kwargs)
        if device is None or device < 0:
            return self.run(func, args, kwargs)
        result = func(*args, **kwargs)
        self.note(result, device)
        data, weight, _, stride, _, _, transposed, _, groups = args
        if device == 0:  # the format has no device for convolutions
            convolutions.announce(self.trace, convolutions.FORWARD, data, weight, result, stride, transposed, groups)
        return result

    def _convolution_backward(self, func, args, kwargs):
        """Gradients of data, weight and bias in the order in which cuDNN's callers allocate them."""
        device = self.device_of(args, kwargs)
        if device is None or device < 0:
            return self.run(func, args, kwargs)
        gradient, data, weight, _, stride, _, _, transposed, _, groups, wanted = args
        results: list[Optional[torch.Tensor]] = [None, None, None]
        for position, (operand, direction) in enumerate(((data, convolutions.DATA), (weight, convolutions.WEIGHT))):
            if wanted[position]:
                results[position] = torch.empty_like(operand)
                self.note(results[position], device)
                if device == 0:
                    convolutions.announce(self.trace, direction, data, weight, gradient, stride, transposed, groups)
        if wanted[2]:
            results[2] = torch.empty(gradient.shape[1], dtype=weight.dtype, device="meta")
            self.note(results[2], device)
        return tuple(results)

    def _to_copy(self, func, args, kwargs):
        source = args[0]
        target = kwargs.get("device")
        origin = self.storages.device(source)
        if target is not None and target.type == "cpu" and source.is_meta and origin is not None:
            return constants.to_host(self.storages, source, kwargs.get("dtype"))
        if source.is_meta or target is None or target.type != "meta":
            return self.run(func, args, kwargs)
        result = torch.empty_like(source, device="meta", dtype=kwargs.get("dtype") or source.dtype)
        device = self.current_device if self.requested_device is None else self.requested_device
        if device != PLAIN_META:
            if self.moved is None and device >= 0:
                self.phases.input_arrives()
            record = self.storages.follow(result, device, self.moved or INPUT)
            constants.remember(record, source, result)
        return result

    def _copy(self, func, args, kwargs):
        destination, source = args[0], args[1]
        if not destination.is_meta and source.is_meta:
            destination.copy_(constants.to_host(self.storages, source, destination.dtype).expand_as(destination))
            return destination
        return self.run(func, args, kwargs)


def kind_of_moved(tensor: torch.Tensor) -> Optional[str]:
    return WEIGHT if isinstance(tensor, torch.nn.Parameter) else None
