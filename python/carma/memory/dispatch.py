"""Runs every operator on `meta` and notes what it allocates: the heart of the tracer."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any, Callable, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import by_values, constants, convolutions, data_dependent, device_rules, scratch_memory, value_checks
from .events import ACTIVATION, INPUT, TEMPORARY, WEIGHT, Trace
from .outputs import tensors_in
from .phases import BETWEEN, Phases
from .quiet import unseen
from .storages import HOST, Storages
from .value_branches import ValueBranches

aten = torch.ops.aten

MATRIX_PRODUCTS = {
    overload
    for name in ("mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "addbmm", "dot", "_addmm_activation", "linear_backward")
    if hasattr(aten, name)
    for overload in (getattr(getattr(aten, name), o) for o in getattr(aten, name).overloads() if "out" not in o)
}
MASKED_FILLS = {aten.masked_fill.Tensor, aten.masked_fill_.Tensor}
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}

HOST_FACTORIES = {
    aten.empty.memory_format, aten.zeros.default, aten.ones.default, aten.full.default, aten.rand.default, aten.randn.default,
}
LARGE_IN_HOST_MEMORY = 64 << 20
"""Bytes from which a tensor in host memory is a stand-in: weights before they become parameters, data sets made up in memory."""

PLAIN_META = -2
"""Created by the script itself on the real `meta` device: it takes no memory anywhere."""


@lru_cache(maxsize=None)
def _has_operators(kind: type) -> bool:
    """Whether a class of tensors has an implementation of its own of PyTorch's operators."""
    return getattr(kind, "__torch_dispatch__", None) is not getattr(torch.Tensor, "__torch_dispatch__", None)


class _OfThread(threading.local):
    """What a call under way in one thread is about; other threads have calls of their own."""

    requested_device: Optional[int] = None
    moved: Optional[str] = None


class MemoryMode(TorchDispatchMode):
    """Follows the storages of what operators return."""

    def __init__(self, trace: Trace, storages: Storages, phases: Phases) -> None:
        super().__init__()
        self.trace = trace
        self.storages = storages
        self.phases = phases
        self.branches = ValueBranches(trace)
        self.current_device = 0
        self.check_devices = True
        self.paused = 0  # while PyTorch works out shapes on fake tensors of its own
        self.number_crossed = False  # a tensor without dimensions in host memory went into an operator on a GPU
        self._thread = _OfThread()
        self.overrides: dict[Any, Callable[..., Any]] = {
            aten.convolution.default: self._convolution,
            aten.convolution_backward.default: self._convolution_backward,
            aten._to_copy.default: self._to_copy,
            aten.copy_.default: self._copy,
        }
        self._known: set[Any] = set()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Asked by PyTorch. Nothing is compiled here, so operators need not go through the compiler's wrapper: it costs time for each."""
        return False

    @property
    def requested_device(self) -> Optional[int]:
        """Set while a call that names a device is running."""
        return self._thread.requested_device

    @requested_device.setter
    def requested_device(self, device: Optional[int]) -> None:
        self._thread.requested_device = device

    @property
    def moved(self) -> Optional[str]:
        """Kind of what is being moved to a GPU, when known."""
        return self._thread.moved

    @moved.setter
    def moved(self, kind: Optional[str]) -> None:
        self._thread.moved = kind

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if types and any(_has_operators(kind) for kind in types):
            return NotImplemented  # tensors made of others, such as a rank's part of one: what is done with those is seen instead
        with unseen():
            self.storages.collect()
            if func not in self._known:
                self._meet(func)
            if self.check_devices and device_rules.check(self.storages, func, args, kwargs):
                self.number_crossed = True
            override = self.overrides.get(func)
            if override is not None:
                return override(func, args, kwargs)
            return self.run(func, args, kwargs)

    def _meet(self, func: Any) -> None:
        """Rules are found by name at an operator's first use: libraries register theirs when they are imported."""
        self._known.add(func)
        rule = data_dependent.rule_of(str(func)) or value_checks.rule_of(str(func))
        if rule is not None:
            self.overrides[func] = lambda func, args, kwargs: rule(self, func, args, kwargs)
        elif func not in self.overrides and _is_made_of_others(func):
            self.overrides[func] = self._in_parts

    def _in_parts(self, func, args, kwargs):
        """In inference mode operators that are made of others arrive whole."""
        with self:
            result = func.decompose(*args, **kwargs)
        return self.run(func, args, kwargs) if result is NotImplemented else result

    def namespaces(self) -> set[str]:
        """Of the operators that ran: `aten` for PyTorch's own."""
        return {str(func).partition(".")[0] for func in self._known if hasattr(func, "_schema")}

    def run(self, func, args, kwargs):
        """An ordinary operator: its results are new unless they share a known storage."""
        device, assumed = self.place_of(args, kwargs)
        if device == HOST:
            args, kwargs = self._as_host_stand_ins(args), self._as_host_stand_ins(kwargs)
        elif func in INDEXING and device is not None:
            args = self._indices_on_gpu(args)
        elif func in MASKED_FILLS and device is not None and not args[2].is_meta:
            args = (*args[:2], self._on_meta(args[2]))
        elif func in HOST_FACTORIES and device is None and self._is_large_in_host_memory(func, args, kwargs):
            result = func(*args, **{**kwargs, "device": torch.device("meta"), "pin_memory": False})
            self.storages.follow(result, HOST, WEIGHT)
            return result
        shadow = constants.before(self.storages, func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except NotImplementedError:
            result = by_values.run(self.storages, func, args, kwargs)
        self.note(result, *self._place_of_result(device, assumed, kwargs))
        if device is not None and device >= 0:
            if func in MATRIX_PRODUCTS:
                self.trace.matrix_product(device)
            scratch_memory.note(self.trace, func, args, device)
        constants.after(self.storages, func, args, result, shadow)
        if self.phases.own.awaited and self.phases.phase == BETWEEN:
            self._look_for_update(func, args)
        return result

    def _look_for_update(self, func: Any, args: Any) -> None:
        for position in constants.written(func):
            for tensor in tensors_in(args[position : position + 1]):
                record = self.storages.find(tensor)
                if record is not None and record.kind == WEIGHT and record.device >= 0:
                    self.phases.own.weight_written()
                    return

    def note(self, result: Any, device: Optional[int], assumed: bool = False) -> None:
        if device is None or device == PLAIN_META:
            return
        for tensor in tensors_in(result):
            if tensor.is_meta:
                self.storages.follow(tensor, device, self.kind(), assumed)

    def kind(self) -> str:
        if self.moved is not None:
            return self.moved
        if self.requested_device is not None and not self.phases.computing:
            return INPUT  # made on the GPU by the script itself, between computations
        return ACTIVATION if self.phases.in_forward else TEMPORARY

    def device_of(self, args: Any, kwargs: Any) -> Optional[int]:
        return self.place_of(args, kwargs)[0]

    def place_of(self, args: Any, kwargs: Any) -> tuple[Optional[int], bool]:
        """The device that an operator runs on, and whether it is assumed. A GPU comes before host memory, an assumed one last."""
        found: Optional[int] = None
        assumed = False
        for tensor in tensors_in((args, kwargs)):
            record = self.storages.find(tensor)
            if record is None:
                continue
            if not record.assumed:
                if record.device >= 0:
                    return record.device, False
                found, assumed = record.device, False
            elif found is None:
                found, assumed = record.device, True
        return found, assumed

    def _place_of_result(self, operand: Optional[int], assumed: bool, kwargs: Any) -> tuple[Optional[int], bool]:
        if self.requested_device is not None:
            return self.requested_device, False
        named = kwargs.get("device")
        if operand is None and named is not None and named.type == "meta":
            return self.current_device, True  # made inside PyTorch for an operand on the GPU: the script's own name their device
        return operand, assumed

    def _is_large_in_host_memory(self, func: Any, args: Any, kwargs: Any) -> bool:
        if self.requested_device is not None or (kwargs.get("device") or torch.device("cpu")).type != "cpu":
            return False
        dtype = kwargs.get("dtype") or torch.get_default_dtype()
        return math.prod(args[0]) * torch.empty((), dtype=dtype).element_size() >= LARGE_IN_HOST_MEMORY

    def host_stand_ins(self, operands: Any) -> Any:
        """As `_as_host_stand_ins`, outside of an operator: stand-ins are no allocations."""
        before, self.requested_device = self.requested_device, PLAIN_META
        try:
            return self._as_host_stand_ins(operands)
        finally:
            self.requested_device = before

    def _as_host_stand_ins(self, operands: Any, depth: int = 0) -> Any:
        """Work in host memory on stand-ins (a model tried out before it is moved) needs no real numbers either."""
        if isinstance(operands, torch.Tensor):
            if operands.is_meta or operands.dim() == 0 and depth < 2:
                return operands  # a number goes with any device, but not in a list, as of `stack`
            stand_in = torch.empty_strided(operands.shape, operands.stride(), dtype=operands.dtype, device="meta")
            constants.remember(self.storages.follow(stand_in, HOST, WEIGHT), operands, stand_in)
            return stand_in
        if type(operands) in (list, tuple):
            return type(operands)(self._as_host_stand_ins(item, depth + 1) for item in operands)
        if isinstance(operands, dict):
            return {name: self._as_host_stand_ins(item, depth + 1) for name, item in operands.items()}
        return operands

    def _indices_on_gpu(self, args):
        """CUDA takes indices in host memory for a tensor on the GPU; `meta` does not."""
        return (args[0], [index if index is None else self._on_meta(index) for index in args[1]], *args[2:])

    @staticmethod
    def _on_meta(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if tensor.is_meta else torch.empty_like(tensor, device="meta")

    # -- special operators

    def _convolution(self, func, args, kwargs):
        device = self.device_of(args, kwargs)
        if device is None or device < 0:
            return self.run(func, args, kwargs)
        data, weight, _, stride, _, _, transposed, _, groups = args
        result = convolutions.in_format_of(func(*args, **kwargs), data, weight)
        self.note(result, device)
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
            record = self.storages.follow(result, device, self.moved or INPUT, assumed=self.requested_device is None)
            constants.remember(record, source, result)
        return result

    def _copy(self, func, args, kwargs):
        destination, source = args[0], args[1]
        if not destination.is_meta and source.is_meta:
            destination.copy_(constants.to_host(self.storages, source, destination.dtype).expand_as(destination))
            return destination
        return self.run(func, args, kwargs)


def _is_made_of_others(func: Any) -> bool:
    name = func.name() if callable(getattr(func, "name", None)) and hasattr(func, "decompose") else ""
    return bool(name) and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")


def kind_of_moved(tensor: torch.Tensor) -> Optional[str]:
    return WEIGHT if isinstance(tensor, torch.nn.Parameter) else None
