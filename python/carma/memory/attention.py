"""`scaled_dot_product_attention` by the kernel that PyTorch would choose on an Ampere GPU.

| kernel | takes | keeps for backward |
|---|---|---|
| flash | half precision, no mask, heads of up to 256, fewer heads of keys | logsumexp of each row |
| memory-efficient | also single precision and masks, widths that are multiples of 16 bytes | logsumexp of each row |
| cuDNN | as flash, where the script has turned the others off | logsumexp of each row |
| plain | everything | the matrix of scores; in single precision |
"""

from __future__ import annotations

from typing import Any

import torch

from .operands import named

aten = torch.ops.aten
HALF = (torch.float16, torch.bfloat16)
NAMES = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def run(func, args, kwargs):
    query, key, value, mask, dropout, causal = named(NAMES, args, kwargs, (None, 0.0, False))
    scale = kwargs.get("scale")
    grouped = kwargs.get("enable_gqa", False) and key.shape[-3] != query.shape[-3]
    dropout = float(dropout)
    if query.dim() != 4 or not hasattr(aten, "_scaled_dot_product_efficient_attention"):
        return func(*args, **kwargs)
    if _allows("flash") and _flash_takes(query, key, value, mask, causal):
        return _flash(query, key, value, dropout, causal, scale)
    if _allows("mem_efficient") and not grouped and _efficient_takes(query, value):
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        bias = None if mask is None else _bias(mask, query, key)
        return aten._scaled_dot_product_efficient_attention.default(query, key, value, bias, keep, dropout, causal, scale=scale)[0]
    if not _allows("math") and _allows("cudnn") and mask is None and query.dtype in HALF:
        return _flash(query, key, value, dropout, causal, scale)
    if grouped:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    if not dropout and hasattr(aten, "_scaled_dot_product_attention_math"):
        return aten._scaled_dot_product_attention_math.default(query, key, value, mask, 0.0, causal, scale=scale)[0]
    return _scores(query, key, value, mask, dropout, causal, scale)


def _allows(kernel: str) -> bool:
    """Whether the script lets PyTorch choose a kernel: `sdpa_kernel`, `enable_flash_sdp` and the like."""
    enabled = getattr(torch.backends.cuda, f"{kernel}_sdp_enabled", None)
    return enabled is None or enabled()


def _flash_takes(query, key, value, mask, causal: Any) -> bool:
    width = query.shape[-1]
    if query.dtype not in HALF or mask is not None or width > 256 or width != value.shape[-1] or width != key.shape[-1]:
        return False
    return not causal or query.shape[-2] == key.shape[-2]


def _efficient_takes(query, value) -> bool:
    alignment = _alignment(query.dtype)
    return query.dtype in (*HALF, torch.float32) and query.shape[-1] % alignment == 0 and value.shape[-1] % alignment == 0


def _alignment(dtype: torch.dtype) -> int:
    return 8 if dtype in HALF else 4


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
    alignment = _alignment(query.dtype)
    if last % alignment and last > 1:
        mask = torch.nn.functional.pad(mask, (0, -last % alignment))[..., :last]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def _scores(query, key, value, mask, dropout, causal, scale):
    """The plain computation with dropout, whose mask takes a byte an element on a GPU. Half precision is computed in single."""
    dtype = query.dtype
    if dtype in HALF and hasattr(torch.backends.cuda, "fp16_bf16_reduction_math_sdp_allowed"):
        query, key, value = query.float(), key.float(), value.float()
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
    return (weights @ value).to(dtype)
