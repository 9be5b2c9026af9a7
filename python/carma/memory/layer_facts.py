"""What a description says of a layer beside its shape: kernel, stride, groups, heads, dropout."""

from __future__ import annotations

from typing import Any

import torch


def _pair(value: Any) -> list[int]:
    values = [int(item) for item in value] if isinstance(value, (tuple, list)) else [int(value)] * 2
    return [1, *values] if len(values) == 1 else values


def facts_of_module(module: torch.nn.Module) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    kernel = getattr(module, "kernel_size", None)
    if kernel is not None:
        facts["kernel"] = _pair(kernel)
        facts["stride"] = _pair(getattr(module, "stride", None) or kernel)
    if getattr(module, "groups", None):
        facts["groups"] = int(module.groups)
    if getattr(module, "inplace", False) is True:
        facts["in_place"] = True
    if isinstance(module, torch.nn.modules.dropout._DropoutNd):
        facts["dropout"] = float(module.p) if module.training else 0.0
    if isinstance(module, torch.nn.MultiheadAttention):
        facts["heads"] = int(module.num_heads)
        facts["dropout"] = float(module.dropout)
    return facts


def facts_of_function(kind: str, args: Any, kwargs: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if kind in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        weight = args[1] if len(args) > 1 else kwargs["weight"]
        position = 6
        stride = args[3] if len(args) > 3 else kwargs.get("stride", 1)
        facts["kernel"] = _pair(list(weight.shape[2:]))
        facts["stride"] = _pair(stride)
        facts["groups"] = int(args[position] if len(args) > position else kwargs.get("groups", 1))
    elif kind in ("max_pool2d", "avg_pool2d"):
        kernel = args[1] if len(args) > 1 else kwargs["kernel_size"]
        stride = args[2] if len(args) > 2 else kwargs.get("stride")
        facts["kernel"], facts["stride"] = _pair(kernel), _pair(stride or kernel)
    elif kind == "scaled_dot_product_attention":
        facts["heads"] = int(args[0].shape[1]) if args and args[0].dim() == 4 else 1
        facts["dropout"] = float(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))
    elif kind == "dropout":
        training = kwargs.get("train", args[2] if len(args) > 2 else True)
        facts["dropout"] = float(kwargs.get("p", args[1] if len(args) > 1 else 0.5)) if training else 0.0
    return facts
