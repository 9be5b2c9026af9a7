"""GPU memory of a training script, told without a GPU.

    python -m carma.memory trace -o run.trace -- train.py ARGS

In code: `with carma.memory.trace("step.trace"): ...` around training, and `carma.memory.describe(model, *inputs)`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["describe", "trace"]


def __getattr__(name: str) -> Any:
    """PyTorch is imported with the first use, so that the command line answers at once."""
    if name == "trace":
        from .context import trace

        return trace
    if name == "describe":
        from .recording import describe

        return describe
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
