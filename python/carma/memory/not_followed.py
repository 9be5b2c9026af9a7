"""What a script uses that the dry run does not follow, and what that does to the estimate. Each is told only where it is used."""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterable, Iterator

import torch

from .failure import is_users
from .patches import Patches
from .value_branches import TORCH, asking_frame

if TYPE_CHECKING:
    from .session import Session

FUSED = "torch.compile is left out: its fused kernels may need less memory than the estimate"
GRAPHS = "CUDA graphs have a memory pool of their own, which is not in the estimate: the job may need up to its activations once more"

LIBRARIES = {
    "cupy": "CuPy", "pycuda": "PyCUDA", "nvidia.dali": "NVIDIA DALI", "numba.cuda": "numba.cuda", "jax": "JAX", "tensorflow": "TensorFlow",
    "cudf": "cuDF", "cuml": "cuML", "tensorrt": "TensorRT", "onnxruntime": "ONNX Runtime",
}
"""They allocate GPU memory by themselves."""
NEVER_BY_OTHERS = {"cupy", "pycuda", "nvidia.dali"}
"""No other library imports these unasked."""

SPLITTING = {"megatron": "Megatron", "colossalai": "Colossal-AI", "fairscale": "FairScale", "oslo": "OSLO", "horovod": "Horovod"}
"""They divide a model or its state between GPUs."""

KNOWN_OPERATORS = frozenset("""
aten prim prims torchvision torchaudio c10d _c10d_functional higher_order quantized profiler inductor rngprims fsdp bitsandbytes
""".split())

_GRAPH_WORDS = re.compile(r"\bCUDAGraph\(|\bcuda\.graph\(|\bmake_graphed_callables\(")


class NotFollowed:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self.triton_launches = 0

    def install(self, patches: Patches) -> None:
        if hasattr(torch, "compile"):
            patches.set(torch, "compile", self._compile(torch.compile))
        patches.set_where_present(torch.cuda, "make_graphed_callables", self._graphed)

    def _compile(self, pretended: Any) -> Any:
        def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
            frame = asking_frame((TORCH,))
            if isinstance(model, torch.nn.Module) or (frame is not None and is_users(frame.f_code.co_filename)):
                options = kwargs.get("options") or {}
                has_graphs = kwargs.get("mode") in ("reduce-overhead", "max-autotune") or options.get("triton.cudagraphs", False)
                self._session.trace.note(GRAPHS if has_graphs else FUSED)
            return pretended(model, *args, **kwargs)

        return compile

    def _graphed(self, callables: Any, *_: Any, **__: Any) -> Any:
        self._session.trace.note(GRAPHS)
        return callables

    def tell(self, running: Iterable[str]) -> None:
        """At the end, with the files of the functions that were running: a script that captures graphs trains first without."""
        for note in self._notes():
            self._session.trace.note(note)
        if any(_GRAPH_WORDS.search(_source(file)) for file in running if is_users(file)):
            self._session.trace.note(GRAPHS)

    def _notes(self) -> Iterator[str]:
        if self.triton_launches:
            yield f"{self.triton_launches} launches of Triton kernels are left out: the tensors they work on are in the estimate"
        foreign = sorted(self._session.memory.namespaces() - KNOWN_OPERATORS)
        if foreign:
            yield (f"operators of {', '.join(foreign)} are followed by their results only: what their kernels allocate on the side "
                   "is not in the estimate")
        for name, title in SPLITTING.items():
            if any(type(module).__module__.partition(".")[0] == name for module in self._session.cross_check.modules()):
                yield f"{title} is not followed: what it divides between GPUs is in the estimate as the script's own process makes it"
        yield from _of_other_libraries()


def _of_other_libraries() -> Iterator[str]:
    loaded = [name for name in LIBRARIES if name in sys.modules]
    if not loaded:
        return
    named = {origin for module in _users_modules() for value in list(vars(module).values()) for origin in _origins(value)}
    for name in loaded:
        if name in NEVER_BY_OTHERS or any(origin == name or origin.startswith(name + ".") for origin in named):
            yield f"the script uses {LIBRARIES[name]}, whose GPU memory is not in the estimate: the job needs that much more"


def _origins(value: Any) -> Iterator[str]:
    origin = getattr(value, "__name__", None) if isinstance(value, ModuleType) else getattr(type(value), "__module__", None)
    if isinstance(origin, str):
        yield origin
    if isinstance(value, type) or callable(value):
        own = getattr(value, "__module__", None)
        if isinstance(own, str):
            yield own


def _users_modules() -> list[ModuleType]:
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
        if isinstance(file, str) and file.endswith(".py") and is_users(file):
            found.append(module)
    return found


def _source(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""
