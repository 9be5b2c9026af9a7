"""The largest batch that a data loader can give: texts of different length, images of different size.

Samples are looked at in host memory, within bounds. Where batches are drawn at random, the largest samples may come together.
"""

from __future__ import annotations

import time
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

import torch
from torch.utils.data import IterableDataset, SequentialSampler
from torch.utils.data.dataloader import default_collate

from .outputs import all_tensors

FIRST_SAMPLES = 64
MOST_SAMPLES = 4000
MOST_BATCHES = 200
"""Batches looked at where there are no samples by number."""
SECONDS = 4.0
CLOSE = 1.02
"""Sizes within 2 % are alike."""


class Found(NamedTuple):
    batch: Any
    elements: int
    looked_at: int
    of: Optional[int]
    """Samples in all, where that is known."""


def elements_of(batch: Any) -> int:
    return sum(tensor.numel() for tensor in all_tensors(batch))


def find(loader: Any, iterator: Any, varies: bool) -> Optional[Found]:
    """The largest batch, or None where all are alike."""
    dataset = loader.dataset
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        return _largest_of_next(iterator) if varies else None
    if not varies and loader.collate_fn is default_collate:
        return None  # samples of different sizes could not even be put together
    sizes = _sizes(dataset, varies)
    if not sizes or max(sizes.values()) <= CLOSE * min(sizes.values()):
        return None
    chosen = _largest(loader, sizes)
    samples = [dataset[index] for index in chosen]
    batch = samples[0] if loader.batch_sampler is None else loader.collate_fn(samples)
    return Found(batch, elements_of(batch), len(sizes), len(dataset))


def _largest_of_next(iterator: Any) -> Optional[Found]:
    end = time.monotonic() + SECONDS
    best, most, count = None, 0, 0
    while count < MOST_BATCHES and time.monotonic() < end:
        try:
            batch = iterator._next_data()
        except StopIteration:
            break
        count += 1
        if elements_of(batch) > most:
            best, most = batch, elements_of(batch)
    return None if best is None else Found(best, most, count, None)


def _sizes(dataset: Any, varies: bool) -> dict[int, int]:
    """Sizes of samples by number: of all, or of some all over the data set."""
    total = len(dataset)
    end = time.monotonic() + SECONDS
    sizes: dict[int, int] = {}
    for index in _spread(total):
        sizes[index] = size_of(dataset[index])
        if len(sizes) == FIRST_SAMPLES and not varies and max(sizes.values()) <= CLOSE * min(sizes.values()):
            break  # a function of its own puts the samples together, but they are alike
        if time.monotonic() > end:
            break
    return sizes


def _spread(total: int) -> Iterator[int]:
    """Numbers all over the range, so that sorted data sets show their large samples too; the last one early."""
    seen = set()
    wanted = min(total, MOST_SAMPLES)
    for count in (min(FIRST_SAMPLES, wanted), wanted):
        for position in range(count):
            index = total - 1 - position * total // count
            if index not in seen:
                seen.add(index)
                yield index


def size_of(sample: Any) -> int:
    """Elements of a sample, whatever it is made of."""
    if isinstance(sample, torch.Tensor):
        return sample.numel()
    if isinstance(sample, (str, bytes)):
        return len(sample)
    if isinstance(sample, Mapping):
        return sum(size_of(value) for value in sample.values())
    if isinstance(sample, (list, tuple)):
        return sum(size_of(value) for value in sample)
    size = getattr(sample, "size", 1)  # of an array a number, of an image width and height
    if isinstance(size, tuple) and len(size) == 2:
        return int(size[0]) * int(size[1])
    return int(size) if isinstance(size, int) else 1


def _largest(loader: Any, sizes: dict[int, int]) -> Sequence[int]:
    batch_size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    is_in_order = isinstance(getattr(loader, "sampler", None), SequentialSampler) and loader.batch_size is not None
    if isinstance(batch_size, int) and not (is_in_order and len(sizes) == len(loader.dataset)):
        return sorted(sizes, key=lambda index: -sizes[index])[:batch_size]
    if loader.batch_sampler is None:
        return [max(sizes, key=lambda index: sizes[index])]
    typical = sorted(sizes.values())[len(sizes) // 2]
    best: Sequence[int] = ()
    most = -1
    for number, batch in enumerate(loader.batch_sampler):
        indices = list(batch)
        size = len(indices) * max((sizes.get(index, typical) for index in indices), default=0)
        if size > most:
            best, most = indices, size
        if number >= MOST_SAMPLES:
            break
    return best
