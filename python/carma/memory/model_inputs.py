"""Inputs of the modules that a script calls: samples in a batch, and whether their size changes from step to step."""

from __future__ import annotations

import weakref
from typing import Any, Optional

import torch

from .outputs import all_tensors
from .quiet import unseen

ALIKE = 1.02


class ModelInputs:
    def __init__(self) -> None:
        self._sizes: weakref.WeakKeyDictionary[torch.nn.Module, tuple[int, int]] = weakref.WeakKeyDictionary()
        self.batch: Optional[int] = None
        self.varying: Optional[tuple[int, int]] = None
        """Elements of the smallest and of the largest input of one module, where they differ."""

    def forward_begins(self, module: torch.nn.Module, inputs: Any) -> None:
        """With the module that is called from outside of any other."""
        if not torch.is_grad_enabled():
            return
        with unseen():
            tensors = [tensor for tensor in all_tensors(inputs) if tensor.dim()]
            elements = sum(tensor.numel() for tensor in tensors)
        if not elements:
            return
        if self.batch is None:
            self.batch = int(tensors[0].shape[0])
        least, most = self._sizes.get(module, (elements, elements))
        least, most = self._sizes[module] = min(least, elements), max(most, elements)
        if most > ALIKE * least:
            self.varying = least, most
