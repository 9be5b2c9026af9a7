"""Attributes replaced for the time of a trace and put back after it."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

_MISSING = object()


class Patches:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._set: list[tuple[Any, str, Any, Any]] = []  # owner, name, value before, value now

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute. It is read from `owner.__dict__`, so that static and class methods come back as they were."""
        before = vars(owner).get(name, _MISSING) if hasattr(owner, "__dict__") else getattr(owner, name, _MISSING)

        def undo() -> None:
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        setattr(owner, name, value)
        self._set.append((owner, name, before, value))
        self._undo.append(undo)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Attributes as they were before, for a while."""
        for owner, name, before, _ in reversed(self._set):
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        try:
            yield
        finally:
            for owner, name, _, value in self._set:
                setattr(owner, name, value)

    def set_where_present(self, owner: Any, name: str, value: Any) -> None:
        if hasattr(owner, name):
            self.set(owner, name, value)

    def on_undo(self, action: Callable[[], None]) -> None:
        """Something else that ends with the trace."""
        self._undo.append(action)

    def set_item(self, mapping: Any, name: str, value: Any) -> None:
        """As `set`, for an item of a dictionary such as `os.environ`."""
        before = mapping.get(name, _MISSING)

        def undo() -> None:
            if before is _MISSING:
                mapping.pop(name, None)
            else:
                mapping[name] = before

        mapping[name] = value
        self._undo.append(undo)

    def undo(self) -> None:
        self._set.clear()
        while self._undo:
            self._undo.pop()()
