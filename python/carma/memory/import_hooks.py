"""Changes to a library that are made when, and only if, a script imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Optional

from .patches import Patches

Change = Callable[[ModuleType], None]


class ImportHooks(importlib.abc.MetaPathFinder):
    """Calls a function with a module right after its own code has run."""

    def __init__(self) -> None:
        self._changes: dict[str, list[Change]] = {}
        self._searching = False

    def install(self, patches: Patches) -> None:
        sys.meta_path.insert(0, self)
        patches.on_undo(lambda: sys.meta_path.remove(self))

    def when_imported(self, name: str, change: Change) -> None:
        if name in sys.modules:
            change(sys.modules[name])
        else:
            self._changes.setdefault(name, []).append(change)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name not in self._changes or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Changing(spec.loader, self._changes.pop(name))
        return spec


class _Changing(importlib.abc.Loader):
    def __init__(self, loader: Any, changes: list[Change]) -> None:
        self._loader = loader
        self._changes = changes

    def __getattr__(self, name: str) -> Any:  # `get_source` and the like of the loader itself
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for change in self._changes:
            change(module)
