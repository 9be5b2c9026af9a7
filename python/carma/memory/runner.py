"""Runs a user's training script, unmodified, under a trace."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import Optional

from . import late_compiler

LATE = late_compiler.install()  # before the modules below, which import it

from . import deepspeed_kernels, distributed, failure, loaders, missing_checkpoints, muting, processes, programs, quantised_layers
from . import reasons, surroundings
from .after_training import AfterTraining
from .batches import Batches
from .import_hooks import ImportHooks
from .inputs import Inputs
from .patches import Patches
from .phases import TraceComplete
from .session import Session
from .time_limit import TimeLimitReached, time_limit

DONE, USAGE, FAILED, OUT_OF_TIME = 0, 2, 3, 4


@dataclass
class Run:
    """What to run and how far."""

    output: str
    program: programs.Program
    iterations: int = 3
    seconds: float = 120.0
    devices: int = 1
    scratch: Optional[str] = None
    network: bool = False
    json_errors: bool = False
    inputs: Optional[str] = None
    """Where to write what the script looked at, if all of that is known."""


def trace_script(run: Run) -> int:
    """Writes the trace of a script and returns the exit code; failures are told on stderr."""
    output = os.path.abspath(run.output)
    if run.program.is_missing():
        failure.report(failure.Failure(run.program.why_missing()), run.json_errors)
        return USAGE
    with contextlib.ExitStack() as stack:
        stack.enter_context(surroundings.ended_by_signals())
        scratch = run.scratch or stack.enter_context(surroundings.temporary_folder())
        os.makedirs(scratch, exist_ok=True)
        stack.enter_context(surroundings.no_processes_left())
        stack.enter_context(surroundings.stdout_to_stderr())
        inputs = Inputs(scratch)
        code, problem, session = _run(run, scratch, inputs)
        inputs.stop()
        if problem is None:
            session.trace.facts.setdefault("script", run.program.name)
            session.trace.write(output)
            if run.inputs is not None:
                inputs.write(run.inputs)
            return DONE
    failure.report(problem, run.json_errors)
    return code


def _run(run: Run, scratch: str, inputs: Inputs) -> tuple[int, Optional[failure.Failure], Session]:
    patches = Patches()
    session = Session(run.iterations, run.devices)
    if LATE is not None:
        LATE.__dict__["around"] = lambda: late_compiler.as_without_dry_run(session.patches.suspended)
    batches = Batches(session.phases)
    after = AfterTraining(session, batches, patches)
    code, problem = DONE, None
    try:
        with time_limit(run.seconds), session:
            sys.argv = [run.program.script, *run.program.arguments]
            hooks = ImportHooks()
            hooks.install(patches)
            overlay = muting.install(session, patches, hooks, scratch, run.network)
            if run.inputs is not None:
                overlay.looked_at = inputs.add_file
                inputs.listen()
            loaders.install(patches)
            batches.install(patches)
            after.install()
            surroundings.keep_signals(patches)
            distributed.install(session, patches)
            deepspeed_kernels.install(session, patches, hooks)
            quantised_layers.install(session, patches, hooks)
            missing_checkpoints.install(session, patches, hooks)
            waiting = processes.install(session, patches, hooks)
            try:
                programs.run(run.program)
                waiting.run_all()
            finally:
                waiting.close()
    except TraceComplete:
        pass
    except TimeLimitReached:
        inputs.complete = False  # how far it came depends on the host
        if session.phases.finished:
            after.out_of_time()
        else:
            session.trace.facts["time_limit"] = run.seconds
        if not session.phases.completed:
            reason = f"no training iteration was complete after {run.seconds:g} s: use a longer --time-limit"
            code, problem = OUT_OF_TIME, _of_thread(session) or failure.Failure(reason)
    except surroundings.Terminated:
        code, problem = FAILED, failure.Failure("the dry run was ended from outside (SIGTERM)")
    except SystemExit as error:
        if not session.phases.completed:
            code, problem = FAILED, failure.of_exception(error)
    except BaseException as error:  # KeyboardInterrupt is the user's own: told like any other end
        after.failed(error)
        if not session.phases.finished:
            code, problem = FAILED, failure.of_exception(error)
    finally:
        patches.undo()
    if session.failures and not session.phases.completed:
        code, problem = FAILED, failure.of_exception(session.failures[0])
    if problem is None and not session.phases.completed:
        code, problem = FAILED, _of_thread(session) or failure.Failure(_nothing_trained(run))
    reason = session.refusal()
    if problem is None and reason is not None:
        code, problem = FAILED, failure.Failure(reason)
    if problem is None and not session.trace.has_weights:
        text = f"{run.program.name} stays on the CPU: it trained without putting anything on a GPU (does it need an option such as --device cuda?)"
        code, problem = FAILED, failure.Failure(text)
    return code, problem, session


def _of_thread(session: Session) -> Optional[failure.Failure]:
    """An error in a thread of the script, which may be why nothing was trained."""
    return None if session.thread_error is None else failure.of_exception(session.thread_error)


def _nothing_trained(run: Run) -> str:
    framework = None if run.program.is_module else reasons.other_framework(run.program.script)
    if framework is not None:
        return f"{run.program.name} uses {framework}: only PyTorch scripts can be dry-run"
    return f"{run.program.name} ended without a step of an optimizer: nothing was trained"
