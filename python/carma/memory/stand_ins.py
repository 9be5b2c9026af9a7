"""A user's real model, for a moment with weights on the pretended GPU."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Optional

import torch

from .dispatch import PLAIN_META
from .events import BUFFER, WEIGHT
from .quiet import unseen
from .session import Session


@contextmanager
def weights_on_gpu(session: Session, model: torch.nn.Module) -> Iterator[None]:
    """Replaces parameters and buffers by ones without memory, shared where they were shared, and puts them back."""
    made: dict[int, torch.Tensor] = {}
    saved = []

    def stand_in(tensor: Optional[torch.Tensor], kind: str) -> Optional[torch.Tensor]:
        if tensor is None:
            return None
        if id(tensor) not in made:
            with unseen(), session.view.requesting(PLAIN_META):
                empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
                session.storages.follow(empty, session.memory.current_device, kind)
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            made[id(tensor)] = torch.nn.Parameter(empty, tensor.requires_grad) if is_parameter else empty
        return made[id(tensor)]

    for module in model.modules():
        saved.append((module, dict(module._parameters), dict(module._buffers)))
        for name, parameter in module._parameters.items():
            module._parameters[name] = stand_in(parameter, WEIGHT)
        for name, buffer in module._buffers.items():
            module._buffers[name] = stand_in(buffer, BUFFER)
    session.memory.check_devices = False  # tensors of the model that are no buffers stay in host memory
    try:
        yield
    finally:
        session.memory.check_devices = True
        for module, parameters, buffers in saved:
            module._parameters.update(parameters)
            module._buffers.update(buffers)
