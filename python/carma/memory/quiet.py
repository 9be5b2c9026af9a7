"""Calls of the tracer's own, which no function mode may translate or record."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

import torch
import torch.overrides

if hasattr(torch.overrides, "_no_torch_function_mode"):  # PyTorch 1.13, where `DisableTorchFunction` leaves modes on

    @contextmanager
    def unseen() -> Iterator[None]:
        if torch._C._is_torch_function_mode_enabled():
            with torch.overrides._no_torch_function_mode():
                yield
        else:
            yield

else:
    unseen = torch._C.DisableTorchFunction
