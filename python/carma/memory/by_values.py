"""Operators without a kernel on `meta`: they are run in host memory on known or plausible values, for the shapes of their results."""

from __future__ import annotations

from typing import Any

import torch

from . import constants
from .outputs import tensors_in
from .storages import Storages

SPARSE_PRODUCTS = ("aten::mm", "aten::mv", "aten::addmm", "aten::_sparse_mm", "aten::_sparse_addmm")
LIMIT = 1 << 24
"""Elements of all operands together; a larger operator is refused."""


def run(storages: Storages, func: Any, args: Any, kwargs: Any) -> Any:
    """To be called while the error of the operator on `meta` is handled: it is raised again where there is no other way."""
    operands = [tensor for tensor in tensors_in((args, kwargs)) if tensor.is_meta]
    if func._schema.name in SPARSE_PRODUCTS and any(tensor.layout != torch.strided for tensor in operands):
        left, right = args[-2:] if func._schema.name.endswith("addmm") else args[:2]
        return torch.empty((left.shape[0], *right.shape[1:]), dtype=right.dtype, device="meta")
    if not operands or sum(tensor.numel() for tensor in operands) > LIMIT or any(tensor.layout != torch.strided for tensor in operands):
        raise
    hosts = {id(tensor): constants.to_host(storages, tensor.detach()) for tensor in operands}

    def exchanged(value: Any, of: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return of(value)
        if type(value) in (list, tuple):
            return type(value)(exchanged(item, of) for item in value)
        if isinstance(value, dict):
            return {name: exchanged(item, of) for name, item in value.items()}
        return value

    def to_host(tensor: torch.Tensor) -> torch.Tensor:
        return hosts.get(id(tensor), tensor)

    given = {id(hosts[id(tensor)]): tensor for tensor in operands}

    def to_meta(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in given:
            return given[id(tensor)]
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")

    try:
        with torch.no_grad():
            result = func(*exchanged(args, to_host), **exchanged(kwargs, to_host))
    except Exception as error:
        raise NotImplementedError(f"{func} cannot be run on meta tensors, nor in host memory on plausible values ({error})") from None
    return exchanged(result, to_meta)
