"""Runs a user's training script, unmodified, under a trace."""

from __future__ import annotations

import contextlib
import os
import runpy
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Iterator, Optional

from . import descendants, distributed, failure, loaders, muting, reasons
from .patches import Patches
from .phases import TraceComplete
from .session import Session
from .time_limit import TimeLimitReached, time_limit

DONE, USAGE, FAILED, OUT_OF_TIME = 0, 2, 3, 4


@dataclass
class Run:
    """What to run and how far."""

    output: str
    script: str
    arguments: list[str] = field(default_factory=list)
    is_module: bool = False
    iterations: int = 3
    seconds: float = 120.0
    devices: int = 1
    scratch: Optional[str] = None
    network: bool = False
    json_errors: bool = False


def trace_script(run: Run) -> int:
    """Writes the trace of a script and returns the exit code; failures are told on stderr."""
    output = os.path.abspath(run.output)
    if not run.is_module and not os.path.isfile(run.script):
        failure.report(failure.Failure(f"no such script: {run.script}"), run.json_errors)
        return USAGE
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ended_by_signals())
        scratch = run.scratch or stack.enter_context(_temporary_folder())
        os.makedirs(scratch, exist_ok=True)
        stack.enter_context(_no_processes_left())
        stack.enter_context(_stdout_to_stderr())
        code, problem, session = _run(run, scratch)
        if problem is None:
            session.trace.facts["script"] = run.script
            session.trace.write(output)
            return DONE
    failure.report(problem, run.json_errors)
    return code


def _run(run: Run, scratch: str) -> tuple[int, Optional[failure.Failure], Session]:
    patches = Patches()
    session = Session(run.iterations, run.devices)
    code, problem = DONE, None
    try:
        with time_limit(run.seconds), session:
            sys.argv = [run.script, *run.arguments]
            muting.install(session, patches, scratch, run.network)
            loaders.install(patches)
            _keep_signals(patches)
            distributed.install(session, patches)
            _execute(run)
    except TraceComplete:
        pass
    except TimeLimitReached:
        if not session.phases.finished:  # else the last step was made in a thread of the script
            session.trace.facts["time_limit"] = run.seconds
        if not session.phases.completed:
            reason = f"no training iteration was complete after {run.seconds:g} s: use a longer --time-limit"
            code, problem = OUT_OF_TIME, _of_thread(session) or failure.Failure(reason)
    except Terminated:
        code, problem = FAILED, failure.Failure("the dry run was ended from outside (SIGTERM)")
    except SystemExit as error:
        if not session.phases.completed:
            code, problem = FAILED, failure.of_exception(error)
    except BaseException as error:  # KeyboardInterrupt is the user's own: told like any other end
        if not session.phases.finished:
            code, problem = FAILED, failure.of_exception(error)
    finally:
        patches.undo()
    if problem is None and not session.phases.completed:
        code, problem = FAILED, _of_thread(session) or failure.Failure(_nothing_trained(run, session))
    reason = session.refusal()
    if problem is None and reason is not None:
        code, problem = FAILED, failure.Failure(reason)
    if problem is None and not session.trace.has_weights:
        text = f"{run.script} stays on the CPU: it trained without putting anything on a GPU (does it need an option such as --device cuda?)"
        code, problem = FAILED, failure.Failure(text)
    return code, problem, session


def _of_thread(session: Session) -> Optional[failure.Failure]:
    """An error in a thread of the script, which may be why nothing was trained."""
    return None if session.thread_error is None else failure.of_exception(session.thread_error)


def _nothing_trained(run: Run, session: Session) -> str:
    framework = None if run.is_module else reasons.other_framework(run.script)
    if framework is not None:
        return f"{run.script} uses {framework}: only PyTorch scripts can be dry-run"
    return f"{run.script} ended without a step of an optimizer: nothing was trained"


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="carma-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # a process of the script may be writing still


class Terminated(BaseException):
    """SIGTERM. Not an `Exception`, so that a script does not handle it."""


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM leaves the script as an exception does, so that the scratch folder and the script's processes go."""

    def stop(*_: Any) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _keep_signals(patches: Patches) -> None:
    """Frameworks put handlers of their own in the place of those that end the dry run."""
    handle = signal.signal

    def of_script(number: Any, handler: Any) -> Any:
        return signal.getsignal(number) if number in (signal.SIGTERM, signal.SIGALRM) else handle(number, handler)

    patches.set(signal, "signal", of_script)


@contextlib.contextmanager
def _no_processes_left() -> Iterator[None]:
    before = descendants.below(os.getpid())
    descendants.adopt()
    try:
        yield
    finally:
        descendants.end_all(before)


def _execute(run: Run) -> None:
    """As `python script.py ARGS` or `python -m module ARGS` would."""
    if run.is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(run.script, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(run.script)))
    main = ModuleType("__main__")
    main.__file__ = run.script
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main  # dataclasses and pickle look names up there
    with open(run.script, "rb") as file:
        source = file.read()
    exec(compile(source, run.script, "exec"), main.__dict__)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
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
