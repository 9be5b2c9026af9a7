"""A wall-clock limit on a piece of work."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from types import FrameType
from typing import Iterator, Optional


class TimeLimitReached(BaseException):
    """Not an `Exception`: a script that handles errors must not go on for ever."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def stop(_: int, __: Optional[FrameType]) -> None:
        raise TimeLimitReached

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again each second, in case a script swallows the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def end_within(seconds: float) -> None:
    """Brings the end of a limit forward."""
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    if left > seconds:
        signal.setitimer(signal.ITIMER_REAL, seconds, interval)
