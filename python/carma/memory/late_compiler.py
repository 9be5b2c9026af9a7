"""PyTorch's compiler, imported only if a script needs it: that takes longer than all else that a small script imports.

PyTorch asks for it in each step of an optimizer, just to say that the compiler shall leave the step alone. These questions are
answered here. Anything else imports the real one, with the real `torch.cuda`, which it looks through.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, ContextManager, Optional

import torch

NAME = "torch._dynamo"


class LateCompiler(ModuleType):
    """Stands for the module until something but the answers below is asked for."""

    def __init__(self, spec: Any) -> None:
        super().__init__(NAME)
        self.__dict__.update(__spec__=spec, __file__=spec.origin)
        self.__dict__["around"]: Callable[[], ContextManager[Any]] = contextlib.nullcontext
        self.__dict__["real"]: Optional[ModuleType] = None

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Nothing is compiled here."""

    @staticmethod
    def disable(fn: Any = None, *_: Any, **__: Any) -> Any:
        return (lambda function: function) if fn is None else fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked of every module, by `inspect` for one
            raise AttributeError(name)
        return getattr(self._load(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._load(), name, value)

    def _load(self) -> ModuleType:
        if self.__dict__["real"] is None:
            if sys.modules.get(NAME) is self:
                del sys.modules[NAME]
            torch.__dict__.pop("_dynamo", None)
            with self.__dict__["around"]():
                self.__dict__["real"] = importlib.import_module(NAME)
        return self.__dict__["real"]


def install() -> Optional[LateCompiler]:
    """For a process that does nothing but a dry run, before anything else asks for the compiler."""
    spec = None if NAME in sys.modules or not hasattr(torch, "compile") else importlib.util.find_spec(NAME)
    if spec is None:
        return None
    late = LateCompiler(spec)
    sys.modules[NAME] = late
    torch.__dict__["_dynamo"] = late
    return late


@contextlib.contextmanager
def as_without_dry_run(suspended: Callable[[], ContextManager[Any]]):
    """The state in which the compiler may be imported."""
    from torch.utils._python_dispatch import _disable_current_modes

    with suspended(), _disable_current_modes(), torch._C.DisableTorchFunction():
        yield
