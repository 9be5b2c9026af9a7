"""What surrounds the run of a script: its scratch folder, its signals, its processes and where its output goes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from typing import Any, Iterator

from . import descendants
from .patches import Patches


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="carma-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # a process of the script may be writing still


class Terminated(BaseException):
    """SIGTERM. Not an `Exception`, so that a script does not handle it."""


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM leaves the script as an exception does, so that the scratch folder and the script's processes go."""

    def stop(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def keep_signals(patches: Patches) -> None:
    """Frameworks put handlers of their own in the place of those that end the dry run."""
    handle = signal.signal

    def of_script(number: Any, handler: Any) -> Any:
        return signal.getsignal(number) if number in (signal.SIGTERM, signal.SIGALRM) else handle(number, handler)

    patches.set(signal, "signal", of_script)


@contextlib.contextmanager
def no_processes_left() -> Iterator[None]:
    before = descendants.below(os.getpid())
    descendants.adopt()
    try:
        yield
    finally:
        descendants.end_all(before)


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """What the script prints goes to stderr, from C and from child processes too."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
