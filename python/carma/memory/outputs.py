"""Tensors in whatever a model takes or gives: tuples, dictionaries, dataclasses."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Mapping

import torch


def all_tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from all_tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from all_tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from all_tensors(getattr(value, field.name))


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """As `all_tensors`, for operands: tensors, lists of tensors, and the mapping of named ones."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, dict):
        for value in values.values():
            yield from tensors_in(value)
