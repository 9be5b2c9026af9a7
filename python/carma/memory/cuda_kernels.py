"""Functions that PyTorch computes otherwise on CUDA than on `meta`: what they keep for backward is CUDA's here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import torch

from . import attention, device_rules, recurrent
from .operands import named
from .outputs import tensors_in
from .storages import HOST

if TYPE_CHECKING:
    from .dispatch import MemoryMode

aten = torch.ops.aten


def replacements(memory: "MemoryMode") -> dict[str, Callable[..., Any]]:
    def on_gpu(tensor: Any) -> bool:
        device = memory.storages.device(tensor) if isinstance(tensor, torch.Tensor) else None
        return device is not None and device >= 0

    def only_on_gpu(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(func, args, kwargs):
            operand = args[0] if args else kwargs.get("input", kwargs.get("query"))
            return kernel(func, args, kwargs) if on_gpu(operand) else func(*args, **kwargs)

        return run

    return {
        "dropout": only_on_gpu(_dropout),
        "one_hot": only_on_gpu(_one_hot),
        "scaled_dot_product_attention": only_on_gpu(attention.run),
        **{name: _recurrent(memory, name, kernel) for name, kernel in recurrent.kernels().items()},
    }


def _recurrent(memory: "MemoryMode", name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch compares the devices of recurrent layers before any operator runs, and so must this."""

    def run(func, args, kwargs):
        first = 2 if recurrent.is_packed(args) else 1
        operands = list(tensors_in((args[0], args[first : first + 2])))
        if memory.check_devices:
            device_rules.together(memory.storages, operands, name)
        device = memory.device_of(operands, {})
        if device is not None and device >= 0:
            memory.trace.note(recurrent.NOTE)
            return kernel(func, args, kwargs)
        if device == HOST:
            states, weights = memory.host_stand_ins(args[first : first + 2])
            args = (memory.host_stand_ins(args[0]), *args[1:first], states, weights, *args[first + 2 :])
        return func(*args, **kwargs)

    return run


def _dropout(func, args, kwargs):
    """CUDA's fused kernel keeps a mask of one byte an element."""
    tensor, probability, training = named(("input", "p", "train"), args, kwargs)
    if not training or probability == 0 or tensor.numel() == 0:
        return func(*args, **kwargs)
    return aten.native_dropout.default(tensor, probability, True)[0]


def _one_hot(func, args, kwargs):
    """Without a number of classes the largest index decides, where it is known."""
    tensor = args[0]
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes < 0:
        classes = int(tensor.max().item()) + 1
    return tensor.new_zeros((*tensor.shape, classes)).scatter_(-1, tensor.unsqueeze(-1), 1)
