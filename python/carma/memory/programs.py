"""Command lines that run Python: what is run, and running it in this process.

    python -u train.py ARGS          torchrun --nproc_per_node 4 train.py ARGS
    python -m package.train ARGS     accelerate launch --config_file multi.yaml train.py ARGS

A launcher is a Python program like any other. It runs as it is; `processes` takes over where it would start its ranks.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import runpy
import shutil
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Optional, Sequence

MODULES = {
    "torchrun": "torch.distributed.run",
    "accelerate": "accelerate.commands.accelerate_cli",
    "accelerate-launch": "accelerate.commands.launch",
    "deepspeed": "deepspeed.launcher.runner",
    "fabric": "lightning.fabric.cli",
}
"""Commands of launchers. They need not be on the path, where only the interpreter of an environment is named."""

OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
RANKS = re.compile(r"--(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus|devices)(?:=(\d+))?$")
STAND_IN = {"deepspeed.launcher.runner": "carma.memory.deepspeed_launcher"}
"""Launchers whose work is simple enough to be done here, where their package is not installed."""
NOT_FOLLOWED = frozenset("horovodrun mpirun mpiexec srun".split())
"""Launchers whose ranks find each other by means of their own."""
LAUNCHERS = frozenset((*MODULES.values(), *STAND_IN.values(), "torch.distributed.launch"))


@dataclass
class Program:
    """A script, a module, or a function that a package has installed as a command."""

    script: str
    arguments: list[str] = field(default_factory=list)
    is_module: bool = False
    function: Optional[str] = None

    @property
    def name(self) -> str:
        return self.script

    def is_missing(self) -> bool:
        return not self.is_module and self.function is None and not os.path.isfile(self.script)

    def why_missing(self) -> str:
        command = os.path.basename(self.script)
        if command in NOT_FOLLOWED:
            return (f"{command} cannot be dry-run: name the training script itself, without {command}. "
                    "The estimate is then for one process, without the buffers of Horovod or MPI")
        return f"no such script: {self.name}"


def parse(words: Sequence[str], any_command: bool = True) -> Optional[Program]:
    """The Python program that a command line runs; None where it runs another one, or code given as text.

    Commands that packages have installed are Python programs too. Without `any_command` only launchers are.
    """
    words = list(words)
    if words and os.path.basename(words[0]) == "env":
        words = words[1:]
        while words and "=" in words[0] and not words[0].startswith("-"):
            words = words[1:]
    if not words:
        return None
    command = os.path.basename(words[0])
    if re.fullmatch(r"python[\d.]*t?", command):
        return _of_interpreter(words[1:])
    if command in MODULES:
        return _module(MODULES[command], words[1:])
    if command == "lightning" and words[1:3] == ["run", "model"]:  # the name of `fabric run` before Lightning 2.2
        return _module(MODULES["fabric"], ["run", *words[3:]])
    if command in NOT_FOLLOWED:
        return Program(words[0], words[1:])
    if words[0].endswith(".py"):
        return Program(words[0], words[1:])
    if not any_command:
        return None
    installed = _installed(command)
    if installed is not None:
        return Program(words[0], words[1:], function=installed)
    path = shutil.which(words[0])
    return Program(path, words[1:]) if path is not None and _has_python_in_first_line(path) else None


def parse_script(words: Sequence[str]) -> Optional[Program]:
    """As `parse`, for words that may also begin as those behind `python` do: a script of any name, or `-m module`."""
    words = list(words)
    if words[:1] and (words[0].startswith("-") or os.path.isfile(words[0]) and not _is_command(words[0])):
        return _of_interpreter(words)
    return parse(words) or (Program(words[0], words[1:]) if words else None)


def _is_command(word: str) -> bool:
    command = os.path.basename(word)
    return command in MODULES or command in NOT_FOLLOWED or command in ("env", "lightning") or re.fullmatch(r"python[\d.]*t?", command) is not None


def _of_interpreter(words: list[str]) -> Optional[Program]:
    """The words behind `python`."""
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word == "-c" or (not word.startswith("--") and "c" in word[1:] and "m" not in word[1:] and word[1:2] not in "WX"):
            return None
        if word in OPTIONS_WITH_VALUE:
            words = words[1:]
        elif not word.startswith("--") and word[1:2] not in "WX" and "m" in word:
            rest = word[word.index("m") + 1 :]
            module = rest or (words.pop(0) if words else "")
            return _module(module, words) if module else None
    return Program(words[0], words[1:]) if words and words[0] != "-" else None


def _module(name: str, arguments: list[str]) -> Program:
    if name in STAND_IN and importlib.util.find_spec(name.partition(".")[0]) is None:
        name = STAND_IN[name]
    return Program(name, arguments, is_module=True)


def _installed(command: str) -> Optional[str]:
    """`package.module:function` of a command that a package of this interpreter has installed."""
    for distribution in importlib.metadata.distributions():
        for entry in distribution.entry_points:
            if entry.group == "console_scripts" and entry.name == command:
                return entry.value
    return None


def _has_python_in_first_line(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            line = file.readline(200)
    except OSError:
        return False
    return line.startswith(b"#!") and b"python" in line


def ranks_named(words: Sequence[str]) -> int:
    """Processes on one server that a launcher's options ask for; 1 without such options."""
    program = parse_script(words)
    if program is None or program.script not in LAUNCHERS:
        return 1
    for position, word in enumerate(program.arguments):
        if word.endswith(".py"):
            return 1
        found = RANKS.match(word)
        value = found and (found.group(1) or "".join(program.arguments[position + 1 : position + 2]))
        if value and value.isdigit():
            return max(1, int(value))
    return 1


def run(program: Program) -> None:
    """As Python itself would, in this process."""
    sys.argv = [program.script, *program.arguments]
    if program.function is not None:
        module, _, attribute = program.function.partition(":")
        function = importlib.import_module(module)
        for name in attribute.split("[")[0].strip().split("."):
            function = getattr(function, name)
        sys.exit(function())
    if program.is_module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(program.script, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(program.script)))
    main = ModuleType("__main__")
    main.__file__ = program.script
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main  # dataclasses and pickle look names up there
    with open(program.script, "rb") as file:
        source = file.read()
    exec(compile(source, program.script, "exec"), main.__dict__)
