"""Memory that CUDA kernels take for themselves while they run, where it is large enough to matter."""

from __future__ import annotations

from typing import Any

import torch

from .events import TEMPORARY, Trace

aten = torch.ops.aten

SORTED_INDICES_FROM = 3072
"""Indices above which the backward of an embedding sorts them first (as in ATen's Embedding.cu)."""


def _flash_attention_backward(args: Any) -> int:
    query = args[1]
    batch, heads, length, width = query.shape
    rounded_length = -(-length // 128) * 128
    rounded_width = -(-width // 32) * 32
    accumulated = batch * heads * rounded_length * rounded_width * 4
    return accumulated + batch * heads * rounded_length * 4


def _efficient_attention_backward(args: Any) -> int:
    query, key = args[1], args[2]
    batch, heads, length, width = query.shape
    delta = batch * heads * length * 4
    if query.dtype == torch.float32 or width <= 64:
        return delta
    return delta + batch * heads * (length + 2 * key.shape[2]) * width * 4


def _embedding_backward(args: Any) -> int:
    count = args[1].numel()
    return 4 * count * args[1].element_size() if count > SORTED_INDICES_FROM else 0


_BESIDE_RESULT = {}
for _name, _size in (
    ("_scaled_dot_product_flash_attention_backward", _flash_attention_backward),
    ("_scaled_dot_product_efficient_attention_backward", _efficient_attention_backward),
    ("embedding_dense_backward", _embedding_backward),
):
    if hasattr(aten, _name):
        _BESIDE_RESULT[getattr(aten, _name).default] = _size


def note(trace: Trace, func: Any, args: Any, device: int) -> None:
    """Memory taken beside the result."""
    size = _BESIDE_RESULT.get(func)
    if size is not None:
        trace.transient(size(args), TEMPORARY, device)
