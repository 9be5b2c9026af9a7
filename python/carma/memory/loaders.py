"""Data is loaded in this process, by one worker: tensors and modes of the dry run do not cross processes."""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
from typing import Any

import torch
import torch.multiprocessing
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

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, **_: Any) -> None:
        """The process of rank 0 stands for all."""
        fn(0, *args)

    patches.set(torch.multiprocessing, "spawn", spawn)
    patches.set_where_present(torch.multiprocessing, "start_processes", spawn)
    _no_copies_of_the_script(patches)


def _no_copies_of_the_script(patches: Patches) -> None:
    """Launchers that start the script once more for each other GPU get a process that does nothing."""
    script = os.path.abspath(sys.argv[0]) if sys.argv else ""

    class Popen(subprocess.Popen):
        def __new__(cls, args: Any, *rest: Any, **kwargs: Any) -> Any:
            words = args if isinstance(args, (list, tuple)) else str(args).split()
            if script and any(os.path.abspath(str(word)) == script for word in words):
                return OtherRank()
            return super().__new__(cls)

    patches.set(subprocess, "Popen", Popen)


class OtherRank:
    """A process of another rank, for ever at work."""

    pid = 0
    returncode = None

    def poll(self) -> None:
        return None

    wait = communicate = terminate = kill = send_signal = lambda self, *_, **__: None  # noqa: E731
