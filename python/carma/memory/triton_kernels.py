"""Kernels written in Triton are not launched: their callers allocate what they write to, and that is all that counts here."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import constants
from .import_hooks import ImportHooks
from .outputs import tensors_in
from .patches import Patches
from .quiet import unseen

if TYPE_CHECKING:
    from .session import Session

CLASSES = {"triton.runtime.jit": ("JITFunction",), "triton.runtime.autotuner": ("Autotuner", "Heuristics")}


def install(session: "Session", patches: Patches, hooks: ImportHooks) -> None:
    for name in CLASSES:
        hooks.when_imported(name, functools.partial(_change, session, patches))


def _change(session: "Session", patches: Patches, module: ModuleType) -> None:
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        session.not_followed.triton_launches += 1
        with unseen():
            for tensor in tensors_in((args, kwargs)):
                constants.forget(session.storages, tensor)  # a kernel may write to any of them

    for name in CLASSES[module.__name__]:
        if hasattr(module, name):
            patches.set(getattr(module, name), "run", run)
