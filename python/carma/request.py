"""What a job needs, from the options of ``Client.submit`` to the API's words."""

import datetime
import os
import re
import shlex
from pathlib import Path

__all__ = ["check_parameters", "job_request", "seconds"]

_UNITS = {"": 1, "k": 2**10 / 2**20, "m": 1, "g": 2**10, "t": 2**20}
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def job_request(
    command,
    *,
    name=None,
    gpus=1,
    memory=None,
    cpus=None,
    host_memory=None,
    time_limit=None,
    directory=None,
    environment=None,
    conda=None,
    venv=None,
    image=None,
    engine=None,
    snapshot=False,
    exclusive=False,
    mode="auto",
    priority=0,
    hold=False,
    begin=None,
    after=(),
    after_any=(),
    wait_for_hardware=False,
    retries=0,
    memory_retries=None,
    checkpoint=False,
    on_hang="report",
    model=None,
    batch=None,
    dry_run=False,
    output=None,
    error=None,
    at_most=None,
):
    """The job as the API takes it."""
    if isinstance(command, str):
        if not command.startswith("#!"):
            words = _words(command)
            raise ValueError(f"a text is a script and begins with #!, as in #!/bin/bash; for a program give a list of words: {words}")
        command = {"script": {"text": command}}
    else:
        command = {"program": [os.fspath(word) for word in command]}
    if conda and venv:
        raise ValueError("conda and venv: give one of them")
    if engine and not image:
        raise ValueError("engine: give the image that it runs")
    activation = {"conda": os.fspath(conda)} if conda else {"venv": os.path.abspath(venv)} if venv else None
    job = {
        "name": name,
        "command": command,
        "directory": os.path.abspath(directory or os.getcwd()),
        "environment": dict(os.environ if environment is None else environment),
        "umask": _umask(),
        "activation": activation,
        "image": image and {"name": image, "engine": engine},
        "snapshot": snapshot,
        "output": output and os.path.abspath(output),
        "error": error and os.path.abspath(error),
        "resources": {
            "gpus": gpus,
            "memory": _mebibytes(memory, "memory"),
            "cpus": cpus,
            "host_memory": _mebibytes(host_memory, "host_memory"),
            "time_limit": seconds(time_limit),
            "exclusive": exclusive,
            "mode": mode,
        },
        "schedule": {
            "priority": priority,
            "hold": hold,
            "begin": _moment(begin),
            "after": [*_conditions(after, "ok"), *_conditions(after_any, "any")],
            "wait_for_hardware": wait_for_hardware,
            "at_most": at_most,
        },
        "retries": {"failure": retries, "out_of_memory": memory_retries},
        "may_checkpoint": checkpoint,
        "on_hang": on_hang,
        "hints": {"model": model and os.path.abspath(model), "batch": batch, "dry_run": dry_run},
    }
    return {key: value for key, value in job.items() if value is not None}


def check_parameters(job, parameters):
    """Refuses a sweep whose program does not use all parameters, as the command line does. A script finds them in its environment."""
    words = job["command"].get("program", [])
    for name in parameters if words else ():
        variable = f"CARMA_PARAM_{name.upper()}"
        used = any(f"{{{name}}}" in word or variable in word or _mentions(Path(job["directory"], word), variable) for word in words)
        if not used and variable not in job["environment"]:
            message = f"{name} is not used: write {{{name}}} in the command, where its value belongs"
            raise ValueError(f"{message}; for a program that reads {variable}, add it to the environment")


def seconds(limit):
    """Seconds, of a number, a timedelta, or a text such as "90min"."""
    if limit is None or isinstance(limit, (int, float)):
        return limit
    if isinstance(limit, datetime.timedelta):
        return limit.total_seconds()
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(limit))
    if not written or written[2] not in _SECONDS:
        raise ValueError(f"{limit!r} is no time limit: write 2h, 90min, or a number of seconds")
    return float(written[1]) * _SECONDS[written[2]]


def _moment(begin):
    """Seconds since 1970, of such a number or a datetime."""
    return int(begin.timestamp() if isinstance(begin, datetime.datetime) else begin) if begin is not None else None


def _conditions(jobs, condition):
    return [{"job": str(getattr(job, "id", job)), "condition": condition} for job in jobs]


def _umask():
    """Our umask; `os.umask` would change it, also for other threads."""
    try:
        written = re.search(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return written and written[1]


#: Below this, a number in a text needs its unit: "12" means 12 GiB, and would be 12 MiB.
_SMALL = 512


def _mebibytes(memory, option):
    if memory is None or isinstance(memory, int):
        return memory
    number = str(memory).strip()
    if number.isdigit() and 0 < int(number) < _SMALL:
        raise ValueError(f"{option}: {number!r} has no unit: write {number}GiB or {number}MiB")
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(memory), re.IGNORECASE)
    if not written:
        raise ValueError(f"{memory!r} is no amount of memory: write 12GiB, 800MiB, or a number of MiB")
    return max(1, round(float(written[1]) * _UNITS[written[2].lower()]))


#: Larger files are no programs.
_MOST_TEXT = 4 << 20


def _mentions(file, text):
    """Whether a file has a text in it."""
    try:
        return file.is_file() and file.stat().st_size <= _MOST_TEXT and text.encode() in file.read_bytes()
    except (OSError, ValueError):
        return False


def _words(command):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
