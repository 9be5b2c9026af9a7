"""Whether the modules that run on a GPU have weights there.

A trace without weights is too low. Devices are compared by operator, but not within operators of other libraries.
"""

from __future__ import annotations

from typing import Any

import torch

from .outputs import all_tensors
from .quiet import unseen
from .storages import HOST, Storages


class GpuWeights:
    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._found = False
        self._missed = False

    @property
    def are_missing(self) -> bool:
        """Modules with parameters ran on a GPU, and no parameter was on one."""
        return self._missed and not self._found

    def module_called(self, module: torch.nn.Module, inputs: Any) -> None:
        if self._found:
            return
        with unseen():
            # one without dimensions may stay in host memory
            parameters = [p for p in module._parameters.values() if p is not None and p.dim() > 0 and p.numel() > 0]
            if not parameters:
                return
            devices = {self._storages.device(parameter) for parameter in parameters}
            if devices - {None, HOST}:
                self._found = True
            elif any(self._storages.device(tensor) not in (None, HOST) for tensor in all_tensors(inputs)):
                self._missed = True
