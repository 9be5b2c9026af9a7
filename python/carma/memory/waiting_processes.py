"""`multiprocessing.Process`: started ones wait until the script waits for them, then the first of each function runs here.

A script that starts one process for each GPU calls one function with different ranks: the first stands for all.
Processes that feed or watch training (loaders, actors, loggers) are never waited for, and so never run.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.process
import multiprocessing.queues
import queue
from typing import TYPE_CHECKING, Any, Optional

from .patches import Patches

if TYPE_CHECKING:
    from .session import Session


class WaitingProcesses:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._started: list[Any] = []
        self._codes: dict[int, int] = {}
        self._run_functions: set[Any] = set()

    def install(self, patches: Patches) -> None:
        process = multiprocessing.process.BaseProcess
        for name in ("start", "join", "is_alive", "terminate", "kill", "close"):
            patches.set_where_present(process, name, _method(getattr(self, f"_{name}")))
        for name in ("exitcode", "pid", "ident", "sentinel"):
            patches.set(process, name, property(getattr(self, f"_{name}")))
        self._real_wait = multiprocessing.connection.wait
        patches.set(multiprocessing.connection, "wait", self._wait)
        get = multiprocessing.queues.Queue.get

        def get_without_waiting(queue_: Any, block: bool = True, timeout: Optional[float] = None) -> Any:
            """What no process will ever put there must not be waited for without end."""
            try:
                return get(queue_, block, 1.0 if block and timeout is None else timeout)
            except queue.Empty:
                if not block or timeout is not None or not self._started:
                    raise
                self.run_all()
                raise RuntimeError("the script waits for data of another process, which a dry run does not start") from None

        patches.set(multiprocessing.queues.Queue, "get", get_without_waiting)

    def run_all(self) -> None:
        """Also at the end of a script: Python waits for its processes then."""
        for process in list(self._started):
            self._run(process)

    def close(self) -> None:
        """Says what was started but never waited for."""
        left = {getattr(process, "name", "") for process in self._started if id(process) not in self._codes}
        if left:
            self._session.trace.note(
                f"{len(left)} process{'es' if len(left) > 1 else ''} that the script started ({', '.join(sorted(left)[:3])}) did not run "
                "in the dry run: GPU memory that such a process takes is not in the estimate."
            )

    def _run(self, process: Any) -> None:
        if id(process) in self._codes or process not in self._started:
            return
        self._codes[id(process)] = 0
        function = process._target if process._target is not None else type(process).run
        if function in self._run_functions:
            return
        self._run_functions.add(function)
        alike = sum(1 for other in self._started if (other._target or type(other).run) == function)
        self._session.see_devices(alike)
        try:
            process.run()
        except SystemExit as end:
            self._codes[id(process)] = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception as error:
            self._codes[id(process)] = 1
            self._session.failures.append(error)
            raise

    # -- methods of a process

    def _start(self, process: Any) -> None:
        self._started.append(process)

    def _join(self, process: Any, timeout: Optional[float] = None) -> None:
        if timeout is None or not process.daemon:
            self._run(process)

    def _is_alive(self, process: Any) -> bool:
        if process in self._started and not process.daemon:
            self._run(process)
        return process in self._started and id(process) not in self._codes

    def _exitcode(self, process: Any) -> Optional[int]:
        return self._codes.get(id(process))

    def _pid(self, process: Any) -> Optional[int]:
        return (1 << 22) + self._started.index(process) if process in self._started else None

    _ident = _pid

    def _sentinel(self, process: Any) -> Any:
        return process

    def _terminate(self, process: Any) -> None:
        self._codes.setdefault(id(process), -15)

    _kill = _close = _terminate

    def _wait(self, objects: Any, timeout: Optional[float] = None) -> list[Any]:
        processes = [item for item in objects if item in self._started]
        for process in processes:
            self._run(process)
        return processes or self._real_wait(objects, timeout)


def _method(function: Any) -> Any:
    return lambda process, *args, **kwargs: function(process, *args, **kwargs)
