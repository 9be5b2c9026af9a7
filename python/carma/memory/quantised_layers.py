"""bitsandbytes: its operators have rules for shapes, so its layers and optimizers run as they are. What goes past PyTorch is replaced here.

Paged optimizers keep their state in memory that CUDA moves between GPU and host. It is counted as on the GPU, where it is used.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from .import_hooks import ImportHooks
from .patches import Patches

if TYPE_CHECKING:
    from .session import Session

PAGED = (
    "the optimizer's state is in paged memory, and is counted as on the GPU: "
    "where memory is short, CUDA moves it to the host, and the job needs less than estimated."
)


def install(session: "Session", patches: Patches, hooks: ImportHooks) -> None:
    def on_gpu(*shape: int, dtype: torch.dtype = torch.float32, device: Any = "cuda") -> torch.Tensor:
        session.trace.note(PAGED)
        return torch.zeros(*shape, dtype=dtype, device=device)

    def without_library(module: ModuleType) -> None:
        patches.set_where_present(module, "get_paged", on_gpu)
        patches.set_where_present(module, "prefetch_tensor", lambda *_, **__: None)
        patches.set_where_present(module, "fill", lambda tensor, value, *_, **__: tensor.fill_(value))

    hooks.when_imported("bitsandbytes.functional", without_library)
