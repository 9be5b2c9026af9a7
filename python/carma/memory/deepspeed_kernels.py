"""DeepSpeed runs as it is, on pretended peers. Its own kernels, which it would compile, are left out: they work in place."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from .import_hooks import ImportHooks
from .patches import Patches

if TYPE_CHECKING:
    from .session import Session


class Kernels:
    """A compiled extension, any function of which does nothing."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def install(session: "Session", patches: Patches, hooks: ImportHooks) -> None:
    def without_compiler(module: ModuleType) -> None:
        patches.set(module.OpBuilder, "load", lambda self, *_, **__: Kernels(self.name))
        patches.set(module.OpBuilder, "is_compatible", lambda self, *_, **__: True)

    hooks.when_imported("deepspeed.ops.op_builder.builder", without_compiler)
