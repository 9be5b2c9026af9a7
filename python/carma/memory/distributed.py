"""`torch.distributed` for one process that stands for the rank 0 of many."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
import torch.distributed

from . import gradient_buckets
from .collectives import collectives
from .patches import Patches
from .process_groups import FakeProcessGroup, RealGroups, StandInGroups

if TYPE_CHECKING:
    from .session import Session


def install(session: "Session", patches: Patches) -> None:
    if not torch.distributed.is_available():
        return
    peers = RealGroups(session) if FakeProcessGroup is not None else StandInGroups(session)
    for name, answer in {**peers.answers(), **collectives()}.items():
        for module in (torch.distributed, torch.distributed.distributed_c10d):
            patches.set_where_present(module, name, answer)
    patches.on_undo(peers.close)
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0")):
        if name in os.environ:
            os.environ[name] = value  # a launcher's other ranks would do the same work
    gradient_buckets.install(session, patches)
