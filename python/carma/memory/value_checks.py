"""Checks of values that a training in good order passes, whatever the values are: nothing is infinite or not a number.

A result of which every element is known to be alike has that in `Record.uniform`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

import torch

from . import constants
from .quiet import unseen
from .storages import storage_of

if TYPE_CHECKING:
    from .dispatch import MemoryMode

ANSWERS = {"isnan": False, "isinf": False, "isposinf": False, "isneginf": False, "isfinite": True, "isclose": True}

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY: dict[str, Callable[[bool], bool]] = {
    "all": lambda value: value, "any": lambda value: value, "logical_not": lambda value: not value, "bitwise_not": lambda value: not value,
}
_DECIDED_BY = {"logical_or": True, "bitwise_or": True, "logical_and": False, "bitwise_and": False}
"""The value of one operand that decides, whatever the other is."""


def functions(memory: "MemoryMode") -> dict[str, Callable[..., Any]]:
    """Functions by name, as a script calls them: some of these are made of several operators."""

    def check(answer: bool) -> Callable[..., Any]:
        def run(func, args, kwargs):
            result = func(*args, **kwargs)
            with unseen():
                record = memory.storages.find(result)
                if record is not None and record.constant is None:
                    record.uniform = answer
            return result

        return run

    def allclose(func, args, kwargs):
        """Two computations of one thing: in full and in mixed precision, before and after a conversion."""
        with unseen():
            operands = [operand for operand in (*args, *kwargs.values()) if isinstance(operand, torch.Tensor)]
            is_plain = all(memory.storages.find(operand) is None for operand in operands)
            values = [constants.known(memory.storages, operand) for operand in operands]
        if is_plain:
            return func(*args, **kwargs)
        torch.isclose(*args, **kwargs).all()  # for its memory
        if any(value is None for value in values):
            return True
        with unseen():
            rest = {name: value for name, value in kwargs.items() if not isinstance(value, torch.Tensor)}
            return torch.allclose(*values, *args[2:], **rest)

    return {**{name: check(answer) for name, answer in ANSWERS.items()}, "allclose": allclose}


def rule_of(operator: str) -> Optional[Callable[..., Any]]:
    """The rule for an operator, by its full name."""
    namespace, _, rest = operator.partition(".")
    name, _, overload = rest.partition(".")
    if namespace != "aten" or "out" in overload:
        return None
    if name in _COMPARISONS and overload in ("Scalar", "Tensor"):
        return _comparison
    if name == "sum":
        return _count
    return _logic if name in _UNARY or name in _DECIDED_BY else None


def _count(mode: "MemoryMode", func: Any, args: Any, kwargs: Any) -> Any:
    """The sum of conditions (`(prediction == label).sum()`)."""
    result = mode.run(func, args, kwargs)
    if isinstance(args[0], torch.Tensor) and args[0].dtype == torch.bool and result.numel() == 1:
        record = mode.storages.find(result)
        if record is not None:
            record.counts = True
    return result


def _comparison(mode: "MemoryMode", func: Any, args: Any, kwargs: Any) -> Any:
    """Of a tensor with itself; and of single numbers, which are compared as the script would read them."""
    result = mode.run(func, args, kwargs)
    record = mode.storages.find(result)
    if record is None or record.constant is not None:
        return result
    one, other = args[0], args[1]
    if isinstance(other, torch.Tensor) and (one is other or _is_same(one, other)):
        record.uniform = str(func).split(".")[1] in ("eq", "le", "ge")
    elif result.numel() == 1:
        operands = [constants.to_host(mode.storages, operand) if isinstance(operand, torch.Tensor) else operand for operand in (one, other)]
        record.uniform = bool(func(*operands))
        record.guessed = True
    return result


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return (
        one.is_meta and other.is_meta and one.shape == other.shape and one.stride() == other.stride()
        and one.storage_offset() == other.storage_offset() and storage_of(one)._cdata == storage_of(other)._cdata
    )


def _logic(mode: "MemoryMode", func: Any, args: Any, kwargs: Any) -> Any:
    operands = [record for record in (mode.storages.find(arg) for arg in args[:2] if isinstance(arg, torch.Tensor)) if record is not None]
    values = [record.uniform for record in operands]
    guessed = any(record.guessed for record in operands)
    result = mode.run(func, args, kwargs)
    record = mode.storages.find(result)
    if record is None or record.constant is not None:
        if record is not None:
            record.guessed |= guessed
        return result
    name = str(func).split(".")[1]
    if name in _UNARY and values and values[0] is not None:
        record.uniform = _UNARY[name](values[0])
    elif name in _DECIDED_BY:
        decisive = _DECIDED_BY[name]
        if decisive in values:
            record.uniform = decisive
        elif len(values) == 2 and None not in values:
            record.uniform = not decisive
    record.guessed |= guessed
    return result
