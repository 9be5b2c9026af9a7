"""Processes that a script would start. None is: rank 0 of a group runs in this process, the others are pretended.

- Launchers (`torchrun`, `accelerate launch`, `deepspeed`, Lightning) end in PyTorch's elastic agent or in `subprocess`.
- Python programs started by `subprocess` or `os.system` run here, one after the other, and their writes go to the scratch folder.
- `multiprocessing`: the first process of a function runs when the script waits for it. Pools work in this process.
- `os.fork` returns as in the parent. What the child would do is not seen.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any, Optional, Sequence

import torch.multiprocessing

from . import in_process_pools, programs
from .import_hooks import ImportHooks
from .patches import Patches
from .waiting_processes import WaitingProcesses

if TYPE_CHECKING:
    from .session import Session

LEFT_OUT = frozenset("pip ensurepip venv virtualenv tensorboard visdom http jupyter nltk spacy".split())
"""Modules that install, download or serve for ever."""

PRETENDED_PID = 1 << 22
"""Above the largest that Linux gives out by default, so that a signal reaches no process."""


def install(session: "Session", patches: Patches, hooks: ImportHooks) -> WaitingProcesses:
    processes = Processes(session)

    def spawn(fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, *_: Any, **__: Any) -> Any:
        """The process of rank 0 stands for all."""
        session.see_devices(nprocs)
        fn(0, *args)
        return None if join else Joined()

    patches.set(torch.multiprocessing, "spawn", spawn)
    patches.set_where_present(torch.multiprocessing, "start_processes", spawn)

    class Popen(subprocess.Popen):
        def __new__(cls, args: Any, *rest: Any, **kwargs: Any) -> Any:
            stand_in = processes.started(args, kwargs)
            return super().__new__(cls) if stand_in is None else stand_in

    system = os.system
    patches.set(subprocess, "Popen", Popen)
    patches.set(os, "system", lambda command: processes.from_shell(command, system))
    for name in ("execv", "execve", "execvp", "execvpe"):
        patches.set(os, name, processes.replaced)
    patches.set(os, "fork", processes.forked)
    waitpid = os.waitpid
    patches.set(os, "waitpid", lambda pid, options: (pid, 0) if pid >= PRETENDED_PID else waitpid(pid, options))
    waiting = WaitingProcesses(session)
    waiting.install(patches)
    in_process_pools.install(patches, hooks)
    hooks.when_imported("torch.distributed.launcher.api", lambda module: patches.set(module, "launch_agent", processes.agent_of(module)))
    return waiting


class Processes:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._script = os.path.abspath(sys.argv[0]) if sys.argv else ""

    # -- launchers

    def agent_of(self, module: ModuleType) -> Any:
        def launch_agent(config: Any, entrypoint: Any, args: Sequence[Any], *_: Any, **__: Any) -> dict[int, Any]:
            self._session.see_devices(config.nproc_per_node)
            os.environ.update(rank_variables(config.nproc_per_node, config.max_nodes, str(config.run_id), config.max_restarts))
            arguments = [argument.replace("${local_rank}", "0") if isinstance(argument, str) else argument for argument in args]
            if callable(entrypoint):
                return {0: entrypoint(*arguments)}
            program = programs.parse([entrypoint, *arguments])
            if program is None:
                raise RuntimeError(f"the launcher starts {entrypoint}, which is no Python program: name the training script itself")
            self._script = os.path.abspath(program.script)
            self._session.trace.facts.update(script=program.name, ranks=int(os.environ["WORLD_SIZE"]))
            programs.run(program)
            return {0: None}

        return launch_agent

    # -- subprocess

    def started(self, command: Any, kwargs: dict[str, Any]) -> Optional["Ended"]:
        """What stands for a process; None where a real one may be started, because it is no Python program."""
        words = [str(word) for word in command] if isinstance(command, (list, tuple)) else _words(str(command))
        environment = kwargs.get("env")
        program = programs.parse(words, any_command=False)
        if program is None and not _runs_python(words) and not _installs(words):
            return None
        if program is None or program.is_module and program.script.partition(".")[0] in LEFT_OUT:
            self._session.trace.note(f"the script starts `{_shown(words)}`, which a dry run leaves out: what it does is not in the estimate")
            return Ended(0)
        is_itself = os.path.abspath(program.script) == self._script and not program.is_module
        rank = _rank(environment)
        if rank not in (None, 0) or (is_itself and rank is None):
            return OtherRank()
        return self._run(program, environment, kwargs)

    def from_shell(self, command: str, system: Any) -> int:
        ended = self.started(command, {})
        return system(command) if ended is None else ended.returncode or 0

    def replaced(self, path: Any, arguments: Any, *environment: Any) -> None:
        """`os.execv`: the script becomes another program, which is run instead; nothing comes after it."""
        ended = self.started([os.fspath(path), *arguments[1:]], {"env": environment[0] if environment else None})
        sys.exit(0 if ended is None else ended.returncode)

    def _run(self, program: programs.Program, environment: Any, kwargs: dict[str, Any]) -> "Ended":
        before = dict(os.environ), list(sys.argv), list(sys.path), sys.modules.get("__main__"), os.getcwd()
        printed = io.StringIO() if kwargs.get("stdout") == subprocess.PIPE else None
        code = 0
        self._session.trace.facts["script"] = program.name
        try:
            if environment is not None:
                os.environ.clear()
                os.environ.update({str(name): str(value) for name, value in environment.items()})
            if kwargs.get("cwd") is not None:
                os.chdir(kwargs["cwd"])
            if "WORLD_SIZE" in os.environ:
                self._session.see_devices(int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
                self._session.trace.facts["ranks"] = int(os.environ["WORLD_SIZE"])
            with contextlib.redirect_stdout(printed) if printed is not None else contextlib.nullcontext():
                programs.run(program)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception as error:  # as a process of its own would end
            traceback.print_exc()
            self._session.failures.append(error)
            code = 1
        finally:
            os.environ.clear()
            os.environ.update(before[0])
            sys.argv, sys.path[:] = before[1], before[2]
            if before[3] is not None:
                sys.modules["__main__"] = before[3]
            os.chdir(before[4])
        is_text = kwargs.get("text") or kwargs.get("universal_newlines") or kwargs.get("encoding")
        output = "" if printed is None else printed.getvalue()
        return Ended(code, output if is_text else output.encode())

    # -- fork

    def forked(self) -> int:
        self._session.trace.note(
            "the script called os.fork, and the child process is not followed: GPU memory that the child takes is not in the estimate."
        )
        return PRETENDED_PID


def rank_variables(ranks: int, servers: int = 1, run: str = "none", restarts: int = 0) -> dict[str, str]:
    """What PyTorch's elastic agent tells the first of its processes."""
    world = str(ranks * servers)
    return {
        "LOCAL_RANK": "0", "RANK": "0", "GROUP_RANK": "0", "ROLE_RANK": "0", "ROLE_NAME": "default", "LOCAL_WORLD_SIZE": str(ranks),
        "WORLD_SIZE": world, "GROUP_WORLD_SIZE": str(servers), "ROLE_WORLD_SIZE": world,
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", "127.0.0.1"), "MASTER_PORT": os.environ.get("MASTER_PORT", "29500"),
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": str(restarts), "TORCHELASTIC_RUN_ID": run,
    }


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a shell script with quotes over several lines
        return command.split()


def _runs_python(words: Sequence[str]) -> bool:
    return bool(words) and os.path.basename(words[0]).startswith("python")


def _installs(words: Sequence[str]) -> bool:
    return bool(words) and re.fullmatch(r"(pip|pipx|conda|mamba|uv)[\d.]*", os.path.basename(words[0])) is not None


def _shown(words: Sequence[str]) -> str:
    text = " ".join(" ".join([os.path.basename(words[0]), *words[1:]]).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _rank(environment: Any) -> Optional[int]:
    """The rank that a process is told, where it is told one: by a launcher of several servers by two numbers."""
    told = [str((environment or {}).get(name, "")) for name in ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK")]
    return max((int(rank) for rank in told if rank.isdigit()), default=None)


class Ended:
    """A process that has ended."""

    pid = PRETENDED_PID
    args: Any = ()
    stdin = None

    def __init__(self, code: Optional[int], output: Any = b"") -> None:
        self.returncode = code
        self._output = output
        stream = io.StringIO if isinstance(output, str) else io.BytesIO
        self.stdout: Any = stream(output)
        self.stderr: Any = stream()

    def __enter__(self) -> "Ended":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def poll(self) -> Optional[int]:
        return self.returncode

    def wait(self, *_: Any, **__: Any) -> Optional[int]:
        return self.returncode

    def communicate(self, *_: Any, **__: Any) -> tuple[Any, Any]:
        return self._output, self._output[:0]

    terminate = kill = send_signal = lambda self, *_, **__: None  # noqa: E731


class OtherRank(Ended):
    """A process of another rank: at work as long as it is asked, and done when it is waited for."""

    def __init__(self) -> None:
        super().__init__(None)

    def wait(self, *_: Any, **__: Any) -> int:
        self.returncode = 0
        return 0

    def communicate(self, *_: Any, **__: Any) -> tuple[Any, Any]:
        self.returncode = 0
        return b"", b""


class Joined:
    """What `mp.spawn(..., join=False)` returns."""

    processes: list[Any] = []

    def join(self, *_: Any, **__: Any) -> bool:
        return True

    def pids(self) -> list[int]:
        return []
