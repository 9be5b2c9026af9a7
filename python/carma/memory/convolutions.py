"""Announces convolutions, so that a reader of the trace can add cuDNN's workspace where it is asked for."""

from __future__ import annotations

from typing import Sequence

import torch

from .events import Trace

DATA, WEIGHT, FORWARD = "data", "weight", "forward"


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).replace("torch.", "")


def _plane(sizes: Sequence[int]) -> tuple[int, int]:
    """Spatial sizes as height and width: 1-d gets a height of 1, 3-d folds the depth into the height."""
    if len(sizes) == 1:
        return 1, int(sizes[0])
    if len(sizes) == 2:
        return int(sizes[0]), int(sizes[1])
    depth = 1
    for size in sizes[:-1]:
        depth *= int(size)
    return depth, int(sizes[-1])


def _strides(stride: Sequence[int], dimensions: int) -> tuple[int, int]:
    stride = list(stride) * dimensions if len(stride) == 1 else list(stride)
    if dimensions == 1:
        return 1, int(stride[0])
    return int(stride[-2]), int(stride[-1])


def in_format_of(result: torch.Tensor, data: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """cuDNN's result is in the format "channels last" where the data or the weight is. `meta` does not follow that everywhere."""
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(data.dim())
    if layout is None or not any(t.is_contiguous(memory_format=layout) and not t.is_contiguous() for t in (data, weight)):
        return result
    return result if result.is_contiguous(memory_format=layout) else torch.empty_like(result, memory_format=layout)


def announce(
    trace: Trace,
    direction: str,
    data: torch.Tensor,
    weight: torch.Tensor,
    output: torch.Tensor,
    stride: Sequence[int],
    transposed: bool,
    groups: int,
) -> None:
    spatial = data.dim() - 2
    numbers = (
        data.shape[0], data.shape[1], *_plane(data.shape[2:]),
        output.shape[1], *_plane(output.shape[2:]),
        *_plane(weight.shape[2:]), *_strides(stride, spatial), groups,
    )
    trace.convolution(direction, (int(number) for number in numbers), dtype_name(data.dtype), transposed)
