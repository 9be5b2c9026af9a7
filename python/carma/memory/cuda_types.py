"""`torch.cuda.FloatTensor` and its like: old names of tensor types, of which PyTorch has none where there is no GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .patches import Patches

if TYPE_CHECKING:
    from .session import Session

NAMES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")


class _CudaType(type):
    """A type that knows its instances by device and dtype, and makes them on the current GPU."""

    dtype: torch.dtype
    is_cuda = True
    is_sparse = False
    layout = torch.strided

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype == cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
        if all(isinstance(size, int) for size in sizes):
            return torch.empty(*sizes, dtype=cls.dtype, device="cuda") if sizes else torch.empty(0, dtype=cls.dtype, device="cuda")
        return torch.as_tensor(args[0], dtype=cls.dtype).to("cuda")


def install(session: "Session", patches: Patches) -> None:
    for name in NAMES:
        host = getattr(torch, f"{name}Tensor")
        made = _CudaType(f"{name}Tensor", (), {"dtype": host.dtype, "__module__": "torch.cuda"})
        patches.set(torch.cuda, f"{name}Tensor", made)
