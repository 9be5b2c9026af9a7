"""Operators whose result depends on values that a dry run does not have.

Known values are used (see `constants`). Otherwise sizes follow one rule each: a condition holds for half of the
elements, all elements are unique, non-maximum suppression keeps every box (callers cap it), and repeats are once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

import torch

from . import constants

if TYPE_CHECKING:
    from .dispatch import MemoryMode

aten = torch.ops.aten

SHARE_OF_TRUE = 2
"""A condition with unknown values is true for one element out of so many."""

TOLD_FROM = 1 << 16
"""Elements from which a selection by unknown values is told."""


def rule_of(operator: str) -> Optional[Callable[..., Any]]:
    """The rule for an operator, by its full name."""
    return _RULES.get(operator)


def _values(mode: "MemoryMode", tensor: torch.Tensor) -> Any:
    return constants.known(mode.storages, tensor)


def _new(mode: "MemoryMode", like: torch.Tensor, shape: Any, dtype: torch.dtype) -> torch.Tensor:
    result = torch.empty(shape, dtype=dtype, device="meta")
    mode.note(result, *mode.place_of((like,), {}))
    return result


def _scalar(mode, func, args, kwargs):
    tensor = args[0]
    if not tensor.is_meta:
        return func(*args, **kwargs)
    values = _values(mode, tensor)
    return constants.plausible_of(mode.storages, tensor) if values is None else values.item()


def _equal(mode, func, args, kwargs):
    values = [_values(mode, operand) for operand in args[:2]]
    if all(value is not None for value in values):
        return func(*values)
    return args[0].shape == args[1].shape


def _nonzero(mode, func, args, kwargs):
    tensor = args[0]
    if not tensor.is_meta:
        return func(*args, **kwargs)
    values = _values(mode, tensor)
    if values is not None:
        found = values.nonzero()
        result = _new(mode, tensor, found.shape, torch.int64)
        record = mode.storages.find(result)
        if record is not None:
            constants.remember(record, found, result)
        return result
    return _new(mode, tensor, (_count(mode, tensor), tensor.dim()), torch.int64)


def _count(mode, mask: torch.Tensor) -> int:
    values = _values(mode, mask)
    if values is not None:
        return int(values.count_nonzero())
    record = mode.storages.find(mask)
    if record is not None and record.uniform is not None:
        return mask.numel() if record.uniform else 0
    if record is not None and mask.numel() >= TOLD_FROM:
        mode.branches.selects(mask.numel())
    return -(-mask.numel() // SHARE_OF_TRUE)


def _masked_select(mode, func, args, kwargs):
    tensor, mask = args
    if not tensor.is_meta:
        return func(*args, **kwargs)
    return _new(mode, tensor, (_count(mode, mask),), tensor.dtype)


def _without_masks(mode, tensor: torch.Tensor, indices: Any) -> list[Any]:
    """Boolean indices replaced by as many integer ones as dimensions they span, as CUDA does by `nonzero`."""
    plain: list[Any] = []
    for index in indices:
        if index is not None and index.dtype in (torch.bool, torch.uint8):
            values = _values(mode, index)
            size = _count(mode, index)
            positions = values.nonzero() if values is not None else None
            found = _new(mode, tensor, (size, max(1, index.dim())), torch.int64)
            if positions is not None:
                record = mode.storages.find(found)
                if record is not None:
                    constants.remember(record, positions, found)
            plain.extend(found.unbind(1) if index.dim() else [found.view(-1)])
        else:
            plain.append(index)
    return plain


def _index(mode, func, args, kwargs):
    tensor, indices = args[0], args[1]
    if tensor.is_meta:
        if mode.device_of((tensor,), {}) is None:  # values in host memory read through an index on the GPU
            return mode.run(func, args, kwargs)
        args = (tensor, _without_masks(mode, tensor, indices), *args[2:])
    elif any(index is not None and index.is_meta for index in indices):
        indices = [index if index is None else constants.to_host(mode.storages, index) for index in indices]
        return func(tensor, indices)
    return mode.run(func, args, kwargs)


def _index_put(mode, func, args, kwargs):
    tensor, indices, value = args[0], args[1], args[2]
    if not tensor.is_meta:
        return mode.run(func, args, kwargs)
    if value.numel() == 1:
        return mode.run(func, (tensor, _without_masks(mode, tensor, indices), *args[2:]), kwargs)
    plain = _without_masks(mode, tensor, indices)
    record = mode.storages.find(tensor)
    if record is not None:
        record.constant = record.uniform = None
    del plain  # the kernel's own copies of the indices live as long as the call
    return tensor


def _unique(mode, func, args, kwargs):
    tensor = args[0]
    values = _values(mode, tensor)
    if not tensor.is_meta:
        return func(*args, **kwargs)
    if values is not None:
        results = func(values, *args[1:], **kwargs)
        return tuple(_placed(mode, tensor, value) for value in results)
    count = tensor.numel()
    return (
        _new(mode, tensor, (count,), tensor.dtype),
        _new(mode, tensor, tensor.shape, torch.int64),
        _new(mode, tensor, (count,), torch.int64),
    )


def _placed(mode, like: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    result = _new(mode, like, value.shape, value.dtype)
    record = mode.storages.find(result)
    if record is not None:
        constants.remember(record, value, result)
    return result


def _unique_dim(mode, func, args, kwargs):
    tensor, dimension = args[0], args[1]
    if not tensor.is_meta:
        return func(*args, **kwargs)
    count = tensor.shape[dimension]
    return (
        _new(mode, tensor, tensor.shape, tensor.dtype),
        _new(mode, tensor, (count,), torch.int64),
        _new(mode, tensor, (count,), torch.int64),
    )


def _repeat_interleave(mode, func, args, kwargs):
    repeats = args[0]
    if not repeats.is_meta:
        return func(*args, **kwargs)
    size = kwargs.get("output_size")
    if size is None:
        values = _values(mode, repeats)
        size = int(values.sum()) if values is not None else repeats.numel()
    return _new(mode, repeats, (size,), torch.int64)


def _bincount(mode, func, args, kwargs):
    tensor = args[0]
    if not tensor.is_meta:
        return func(*args, **kwargs)
    values = _values(mode, tensor)
    minimum = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    size = max(int(minimum), int(values.max()) + 1 if values is not None and values.numel() else 1)
    return _new(mode, tensor, (size,), torch.int64)


def _non_maximum_suppression(mode, func, args, kwargs):
    boxes = args[0]
    if not boxes.is_meta:
        return func(*args, **kwargs)
    return _new(mode, boxes, (boxes.shape[0],), torch.int64)


def _nothing(mode, func, args, kwargs):
    return None


def _first(mode, func, args, kwargs):
    return args[0]


_RULES: dict[str, Callable[..., Any]] = {
    "aten._local_scalar_dense.default": _scalar,
    "aten.equal.default": _equal,
    "aten.nonzero.default": _nonzero,
    "aten.masked_select.default": _masked_select,
    "aten.index.Tensor": _index,
    "aten.index_put_.default": _index_put,
    "aten._index_put_impl_.default": _index_put,
    "aten._unique2.default": _unique,
    "aten.unique_consecutive.default": _unique,
    "aten.unique_dim.default": _unique_dim,
    "aten.repeat_interleave.Tensor": _repeat_interleave,
    "aten.bincount.default": _bincount,
    "aten._amp_foreach_non_finite_check_and_unscale_.default": _nothing,
    "aten._amp_update_scale_.default": _first,
    "torchvision.nms.default": _non_maximum_suppression,
    # in place, by one kernel; `meta` does not have all of them
    **{f"aten._fused_{name}_.{kind}": _nothing for name in ("sgd", "adam", "adamw", "adagrad") for kind in ("default", "tensor_lr")},
}
