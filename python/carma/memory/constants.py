"""Values of small tensors on the pretended GPU, so that lengths, masks and flags are what the script computed.

A storage of few elements keeps its values in host memory beside it. An operator whose operands all have
values is run on these too, in place where the operator is; any other writer makes the values unknown.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Optional

import torch

from .storages import Record, Storages

LIMIT = 65_536
"""Elements up to which values are kept: small enough to cost nothing."""

WHOLE_LIMIT = 1 << 20
"""As `LIMIT`, of whole numbers and conditions: token ids, labels and masks decide on sizes."""

HOST_COPY_LIMIT = 1 << 24
"""Elements up to which a copy to the host is really filled in."""


def is_large(tensor: torch.Tensor) -> bool:
    """Whether its values are not kept."""
    elements = tensor.numel()
    return elements > LIMIT and (elements > WHOLE_LIMIT or tensor.is_floating_point() or tensor.is_complex())


def remember(record: Record, source: torch.Tensor, placed: torch.Tensor) -> None:
    """Keeps the values of a host tensor that was copied to the GPU."""
    if is_large(source) or source.layout != torch.strided or source.is_meta:
        return
    elements = record.size // max(1, placed.element_size())
    flat = torch.zeros(elements, dtype=placed.dtype)
    flat.as_strided(placed.shape, placed.stride(), placed.storage_offset()).copy_(source.detach())
    record.constant = flat


def known(storages: Storages, tensor: torch.Tensor) -> Optional[torch.Tensor]:
    """The values of a tensor: itself in host memory, a view of what is kept for a GPU's, or None."""
    if not tensor.is_meta:
        return None if is_large(tensor) else tensor
    record = storages.find(tensor)
    if record is None:
        return None
    if record.constant is None:
        return None if record.uniform is None or is_large(tensor) else torch.full(tensor.shape, record.uniform, dtype=tensor.dtype)
    if record.constant.dtype != tensor.dtype:
        return None
    return record.constant.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def to_host(storages: Storages, tensor: torch.Tensor, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """A copy in host memory: the known values, else plausible ones (see `plausible`)."""
    values = known(storages, tensor)
    if values is not None:
        return values.clone() if dtype is None else values.to(dtype, copy=True)
    value = torch.full((), plausible_of(storages, tensor), dtype=dtype or tensor.dtype)
    filled = value.expand(tensor.shape)
    return filled.clone() if tensor.numel() <= HOST_COPY_LIMIT else filled


def plausible(dtype: torch.dtype) -> Any:
    """Numbers are 1 (a finite loss that does not vanish), classes and indices 0, conditions false."""
    if dtype == torch.bool:
        return False
    return 1.0 if dtype.is_floating_point or dtype.is_complex else 0


def plausible_of(storages: Storages, tensor: torch.Tensor) -> Any:
    """As `plausible`; of right answers there is one, because scripts keep their best result only where it is above 0."""
    record = storages.find(tensor)
    return 1 if record is not None and record.counts else plausible(tensor.dtype)


class _Unknown(Exception):
    pass


@lru_cache(maxsize=None)
def written(func: Any) -> tuple[int, ...]:
    """Positions of the operands that an operator writes to."""
    arguments = func._schema.arguments
    return tuple(i for i, argument in enumerate(arguments) if argument.alias_info is not None and argument.alias_info.is_write)


@lru_cache(maxsize=None)
def _is_random(func: Any) -> bool:
    tags = getattr(func, "tags", ())
    name = func._schema.name
    words = ("rand", "dropout", "bernoulli", "normal", "uniform", "multinomial", "exponential", "empty")
    return getattr(torch.Tag, "nondeterministic_seeded", None) in tags or any(word in name for word in words)


_FACTORIES = ("zeros", "ones", "full", "arange", "scalar_tensor", "linspace", "eye", "tril_indices", "triu_indices")


@lru_cache(maxsize=None)
def _is_factory(func: Any) -> bool:
    return func._schema.name.replace("aten::", "").split(".")[0] in _FACTORIES


def before(storages: Storages, func: Any, args: Any, kwargs: Any) -> Optional[tuple[Any, Any]]:
    """The operands as values, when all of them are known; to be called before the operator runs."""
    if _is_random(func):
        return None
    found = [False]

    def value(operand: Any) -> Any:
        if isinstance(operand, torch.Tensor):
            result = known(storages, operand)
            if result is None:
                raise _Unknown
            found[0] = True
            return result
        if isinstance(operand, (list, tuple)):
            return type(operand)(value(item) for item in operand) if type(operand) in (list, tuple) else operand
        if isinstance(operand, torch.device):
            return torch.device("cpu")
        return operand

    try:
        values = value(tuple(args)), {name: value(operand) for name, operand in kwargs.items()}
    except _Unknown:
        return None
    return values if found[0] or _is_factory(func) else None


def after(storages: Storages, func: Any, args: Any, result: Any, shadow: Optional[tuple[Any, Any]]) -> None:
    """Carries values from operands to results, or drops those that the operator has overwritten."""
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    tensors = [item for item in results if isinstance(item, torch.Tensor) and item.is_meta]
    overwritten = written(func)
    if shadow is None:
        for position in overwritten:
            if position < len(args):
                _drop(storages, args[position])
        return
    if not tensors or any(is_large(tensor) for tensor in tensors):
        return
    if not overwritten and all(_has_constant(storages, tensor) for tensor in tensors):
        return  # a view: it reads the values of its base
    try:
        with torch.no_grad():
            values = func(*shadow[0], **shadow[1])
    except Exception:  # an operator without a CPU kernel for these: its result is simply not known
        for position in overwritten:
            if position < len(args):
                _drop(storages, args[position])
        return
    if overwritten:
        for position in overwritten:
            _drop(storages, args[position] if position < len(args) else None, only_uniform=True)  # these values were not written to
        return
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    for tensor, value in zip(results, values):
        if isinstance(tensor, torch.Tensor) and tensor.is_meta and isinstance(value, torch.Tensor):
            record = storages.find(tensor)
            if record is not None and record.constant is None and value.shape == tensor.shape:
                remember(record, value, tensor)


def _has_constant(storages: Storages, tensor: torch.Tensor) -> bool:
    record = storages.find(tensor)
    return record is not None and record.constant is not None


def forget(storages: Storages, tensor: torch.Tensor) -> None:
    """For writers that are no operators."""
    _drop(storages, tensor)


def _drop(storages: Storages, operand: Any, only_uniform: bool = False) -> None:
    for tensor in operand if isinstance(operand, (list, tuple)) else [operand]:
        if isinstance(tensor, torch.Tensor) and tensor.is_meta:
            record = storages.find(tensor)
            if record is not None:
                record.uniform = None
                if not only_uniform:
                    record.constant = None
