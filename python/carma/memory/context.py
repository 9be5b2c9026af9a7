"""`with carma.memory.trace("step.trace"):` around training in the user's own code."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, Optional

from .phases import TraceComplete
from .session import Session


@contextmanager
def trace(path: str, iterations: Optional[int] = None, devices: int = 1) -> Iterator[Session]:
    """Traces what is built and trained inside the block, on pretended GPUs, and writes the file at its end.

    Models, optimizers and data must be made inside. With `iterations` the block is left after so many optimizer steps, so that
    a training loop need not end by itself; files, connections and data loaders are the caller's own affair here.
    """
    session = Session(iterations or 1, devices, stop=iterations is not None)
    try:
        with session:
            yield session
    except TraceComplete:
        pass
    reason = session.refusal()
    if reason is not None:
        raise RuntimeError(reason)
    session.trace.write(path)
