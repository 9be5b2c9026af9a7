"""Operands of a function by name, wherever the caller put them."""

from __future__ import annotations

from typing import Any


def named(names: tuple[str, ...], args: Any, kwargs: Any, defaults: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    values = list(args[: len(names)])
    missing = len(names) - len(defaults)
    for position in range(len(values), len(names)):
        name = names[position]
        values.append(kwargs[name] if position < missing else kwargs.get(name, defaults[position - missing]))
    return tuple(values)
