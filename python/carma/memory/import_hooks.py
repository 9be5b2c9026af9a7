"""Changes to a library that are made when, and only if, a script imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Optional

from .patches import Patches

Change = Callable[[ModuleType], None]


class ImportHooks(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and calls a function with each of the named ones right after its own code has run."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}

    def install(self, patches: Patches) -> None:
        sys.meta_path.insert(0, self)
        patches.on_undo(lambda: sys.meta_path.remove(self))

    def when_imported(self, name: str, change: Change) -> None:
        if name in sys.modules:
            change(sys.modules[name])
        else:
            self._changes.setdefault(name, []).append(change)

    def imported(self, module: ModuleType) -> None:
        for change in self._changes.pop(module.__name__, []):
            change(module)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self._changes:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Changing(spec.loader, self)
                return spec
        return None


class _Changing(importlib.abc.Loader):
    """Changes are made when the module has run, not when it is found: libraries ask for modules without importing them."""

    def __init__(self, loader: Any, hooks: ImportHooks) -> None:
        self._loader = loader
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:  # `get_source` and the like of the loader itself
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._hooks.imported(module)
