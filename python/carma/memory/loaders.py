"""Data is loaded in this process, by one worker: tensors and modes of the dry run do not cross processes."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch.utils.data

from .patches import Patches


def install(patches: Patches) -> None:
    loader = torch.utils.data.DataLoader
    initialise = loader.__init__
    signature = inspect.signature(initialise)
    quiet = {
        "num_workers": 0, "prefetch_factor": signature.parameters["prefetch_factor"].default, "persistent_workers": False,
        "pin_memory": False, "timeout": 0, "multiprocessing_context": None, "worker_init_fn": None,
    }

    @functools.wraps(initialise)
    def init(self, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        for name, value in quiet.items():
            if name in bound.arguments:
                bound.arguments[name] = value
        initialise(*bound.args, **bound.kwargs)

    patches.set(loader, "__init__", init)
