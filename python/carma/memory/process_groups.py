"""The group of processes that a script believes to be part of: this one is rank 0, the others do not exist.

Newer PyTorch has a process group without peers, for tests. It is a real group to meshes, sharding and functional collectives.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

import torch
import torch.distributed

from .quiet import unseen

if TYPE_CHECKING:
    from .session import Session

try:
    from torch._C._distributed_c10d import FakeProcessGroup
except ImportError:
    FakeProcessGroup = None


def _ranks_wanted(session: "Session", given: Any) -> int:
    ranks = int(given) if given is not None else -1
    ranks = ranks if ranks > 0 else int(os.environ.get("WORLD_SIZE", session.devices))
    session.trace.facts["ranks"] = ranks
    if ranks > 1:
        session.trace.note(f"the job is one of {ranks} ranks: what NCCL takes to talk to the others is not in the estimate.")
    return ranks


class RealGroups:
    """PyTorch's own groups, on a backend without peers."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._initialise = torch.distributed.init_process_group
        self._new_group = torch.distributed.new_group
        self._destroy = torch.distributed.destroy_process_group
        self._is_initialised = torch.distributed.is_initialized

    def answers(self) -> dict[str, Callable[..., Any]]:
        return {
            "init_process_group": self._init,
            "new_group": self._new,
            "get_backend": lambda group=None: "nccl",
            "is_nccl_available": lambda: True,
            "get_node_local_rank": lambda *_: 0,
        }

    def close(self) -> None:
        if self._is_initialised():
            self._destroy()

    def _init(self, backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1, *_: Any, **__: Any) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        if self._is_initialised():
            raise ValueError("trying to initialize the default process group twice!")
        with unseen():
            self._initialise("fake", store=FakeStore(), rank=0, world_size=_ranks_wanted(self._session, world_size))

    def _new(self, ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        with unseen():
            return self._new_group(ranks, backend="fake")


class Group:
    """All ranks, of which this process is the first."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.group_name = "default"

    def size(self) -> int:
        return self.ranks

    def rank(self) -> int:
        return 0


class StandInGroups:
    """For PyTorch without such a group."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._ranks = 0

    def answers(self) -> dict[str, Callable[..., Any]]:
        return {
            "init_process_group": self._init,
            "is_initialized": lambda: self._ranks > 0,
            "get_rank": lambda group=None: 0,
            "get_world_size": self._size,
            "get_backend": lambda group=None: "nccl",
            "is_nccl_available": lambda: True,
            "new_group": lambda ranks=None, *_, **__: Group(len(ranks) if ranks else self._size()),
            "destroy_process_group": self.close,
        }

    def close(self, *_: Any, **__: Any) -> None:
        self._ranks = 0

    def _init(self, *_: Any, **kwargs: Any) -> None:
        self._ranks = _ranks_wanted(self._session, kwargs.get("world_size"))

    def _size(self, group: Any = None) -> int:
        return group.ranks if isinstance(group, Group) else max(1, self._ranks)
