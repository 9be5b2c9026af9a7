"""Changes to modules that a script may import later, made right after their import."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Optional

Change = Callable[[ModuleType], None]


class AfterImport(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and calls `change` once each of the named ones has run."""

    def __init__(self, changes: dict[str, Change]) -> None:
        self._changes = dict(changes)

    def install(self) -> None:
        for name in [name for name in self._changes if name in sys.modules]:
            self._changes.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self._changes:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    run = spec.loader.exec_module

                    def exec_module(module: ModuleType) -> None:
                        run(module)
                        change = self._changes.pop(name, None)  # not before: libraries ask for modules without importing them
                        if change is not None:
                            change(module)

                    spec.loader.exec_module = exec_module  # type: ignore[method-assign]
                return spec
        return None
