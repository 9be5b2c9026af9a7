"""Functions that PyTorch computes otherwise on CUDA than on `meta`: what they keep for backward is CUDA's here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import torch

from . import device_rules, recurrent
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
        "scaled_dot_product_attention": only_on_gpu(_attention),
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
            return kernel(func, args, kwargs)
        if device == HOST:
            states, weights = memory.host_stand_ins(args[first : first + 2])
            args = (memory.host_stand_ins(args[0]), *args[1:first], states, weights, *args[first + 2 :])
        return func(*args, **kwargs)

    return run


def _dropout(func, args, kwargs):
    """CUDA's fused kernel keeps a mask of one byte an element."""
    tensor, probability, training = _named(("input", "p", "train"), args, kwargs)
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


def _attention(func, args, kwargs):
    """Flash attention for half precision, else the memory-efficient kernel; neither keeps the matrix of scores."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    query, key, value, mask, dropout, causal = _named(names, args, kwargs, (None, 0.0, False))
    scale = kwargs.get("scale")
    if kwargs.get("enable_gqa", False):
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    if query.dim() != 4 or not hasattr(aten, "_scaled_dot_product_efficient_attention"):
        return func(*args, **kwargs)
    dropout = float(dropout)
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
    half = query.dtype in (torch.float16, torch.bfloat16)
    if half and mask is None and query.shape[-1] <= 256 and query.shape[-1] == value.shape[-1]:
        return _flash(query, key, value, dropout, causal, scale)
    if query.shape[-1] % (8 if half else 4) or value.shape[-1] % (8 if half else 4):
        return _scores(query, key, value, mask, dropout, causal, scale)
    bias = None if mask is None else _bias(mask, query, key)
    return aten._scaled_dot_product_efficient_attention.default(query, key, value, bias, keep, dropout, causal, scale=scale)[0]


def _flash(query, key, value, dropout, causal, scale):
    width = query.shape[-1]
    padding = -width % 8
    if padding:
        query, key, value = (torch.nn.functional.pad(tensor, (0, padding)) for tensor in (query, key, value))
        scale = scale or width**-0.5
    result = aten._scaled_dot_product_flash_attention.default(query, key, value, dropout, causal, False, scale=scale)[0]
    return result[..., :width] if padding else result


def _bias(mask, query, key):
    """A boolean mask becomes an additive one; rows are padded to the kernel's alignment, then repeated without a copy."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    last = mask.shape[-1]
    alignment = 8 if query.dtype in (torch.float16, torch.bfloat16) else 4
    if last % alignment and last > 1:
        mask = torch.nn.functional.pad(mask, (0, -last % alignment))[..., :last]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _scores(query, key, value, mask, dropout, causal, scale):
    """The plain computation, which keeps the matrix of scores, for widths that no fused kernel takes."""
    factor = (scale or query.shape[-1] ** -0.5) ** 0.5
    scores = (query * factor) @ (key.transpose(-2, -1) * factor)
    if causal:
        mask = torch.ones_like(scores[0, 0], dtype=torch.bool).tril_()
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
        scores = scores + mask
    weights = torch.softmax(scores, -1)
    if dropout > 0:
        weights = aten.native_dropout.default(weights, dropout, True)[0]
    return weights @ value


def _named(names: tuple[str, ...], args: Any, kwargs: Any, defaults: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    values = list(args[: len(names)])
    missing = len(names) - len(defaults)
    for position in range(len(values), len(names)):
        name = names[position]
        values.append(kwargs[name] if position < missing else kwargs.get(name, defaults[position - missing]))
    return tuple(values)
