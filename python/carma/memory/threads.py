"""Threads of a script see the pretended GPU. Modes of PyTorch belong to one thread, so each thread enters them by itself."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from .patches import Patches
from .phases import TraceComplete

if TYPE_CHECKING:
    from .session import Session


def install(session: "Session", patches: Patches) -> None:
    start = threading.Thread.start

    def start_in_modes(thread: threading.Thread, *args: Any, **kwargs: Any) -> None:
        run = thread.run

        def run_in_modes() -> None:
            if not session.is_open:
                return run()
            try:
                with session.memory, session.view:
                    run()
            except TraceComplete:  # the main thread may be waiting for this one
                if callable(signal.getsignal(signal.SIGALRM)):  # of `time_limit`
                    os.kill(os.getpid(), signal.SIGALRM)
            except BaseException as error:
                session.thread_error = session.thread_error or error
                raise
            return None

        thread.run = run_in_modes  # type: ignore[method-assign]
        start(thread, *args, **kwargs)

    patches.set(threading.Thread, "start", start_in_modes)
