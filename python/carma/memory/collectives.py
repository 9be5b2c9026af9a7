"""Collectives among pretended peers: their tensors stay as they are, which is all that memory needs."""

from __future__ import annotations

from typing import Any, Callable

import torch


class Work:
    """A collective that is done."""

    def __init__(self, result: Any = None) -> None:
        self._result = [] if result is None else result

    def wait(self, *_: Any) -> bool:
        return True

    synchronize = block_current_stream = wait

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(self._result)
        return future


def _done(*args: Any, async_op: bool = False, **_: Any) -> Any:
    return Work() if async_op else None


def _all_gather(tensor_list: Any, tensor: torch.Tensor, group: Any = None, async_op: bool = False) -> Any:
    for target in tensor_list:
        target.copy_(tensor)
    return _done(async_op=async_op)


def _all_gather_object(objects: list[Any], value: Any, group: Any = None) -> None:
    objects[:] = [value] * len(objects)


def _gather_object(value: Any, objects: Any = None, *_: Any, **__: Any) -> None:
    if objects is not None:
        objects[:] = [value] * len(objects)


def _scatter_objects(outputs: list[Any], inputs: Any = None, *_: Any, **__: Any) -> None:
    if inputs:
        outputs[0] = inputs[0]


def _point_to_point(*_: Any, **__: Any) -> Work:
    return Work()


PLAIN = """
all_reduce broadcast reduce reduce_scatter gather scatter all_to_all all_to_all_single send recv barrier monitored_barrier
all_gather_into_tensor _all_gather_base all_gather_single reduce_scatter_tensor _reduce_scatter_base reduce_scatter_single
all_reduce_coalesced all_gather_coalesced
""".split()


def collectives() -> dict[str, Callable[..., Any]]:
    return {
        **{name: _done for name in PLAIN},
        "isend": _point_to_point,
        "irecv": _point_to_point,
        "batch_isend_irecv": lambda operations: [Work() for _ in operations],
        "all_gather": _all_gather,
        "all_gather_object": _all_gather_object,
        "gather_object": _gather_object,
        "scatter_object_list": _scatter_objects,
        "broadcast_object_list": lambda objects, *_, **__: None,
    }
