"""What went wrong, in terms of the user's script: file, line, source text and the reason in one sentence."""

from __future__ import annotations

import functools
import json
import linecache
import os
import site
import sys
import sysconfig
import traceback
from dataclasses import asdict, dataclass
from typing import Any, Optional

import torch


@dataclass
class Failure:
    error: str
    file: Optional[str] = None
    line: Optional[int] = None
    code: Optional[str] = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        if self.file is None:
            return self.error
        return f"{self.file}:{self.line}: {self.code}\n  {self.error}"


@functools.lru_cache(maxsize=None)
def _foreign_folders() -> tuple[str, ...]:
    """Folders whose code is not the user's: libraries, PyTorch, this package."""
    folders = {os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.abspath(torch.__file__))}
    folders |= {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= set(getattr(site, "getsitepackages", list)()) | {site.getusersitepackages(), "/usr/lib/python3/dist-packages"}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def is_users(file: str) -> bool:
    if file.startswith(("<", *_foreign_folders())):
        return False
    return not os.path.realpath(file).startswith(_foreign_folders())


def of_exception(error: BaseException) -> Failure:
    """The last place in the user's own code on the way to the error."""
    reason = _reason(error)
    if isinstance(error, SyntaxError) and error.filename:
        return Failure(reason, error.filename, error.lineno, (error.text or "").strip())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    if not frames:
        return Failure(reason)
    frame = frames[-1]
    code = frame.line or linecache.getline(frame.filename, frame.lineno or 0).strip()
    return Failure(reason, frame.filename, frame.lineno, code)


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    first = text.split(". ")[0] if len(text) > 300 else text
    if isinstance(error, SystemExit):
        return f"the script ended itself (exit code {error.code}) before a training iteration was complete"
    if isinstance(error, NotImplementedError) and ("meta" in text.lower() or "Meta" in text):
        return f"an operator cannot be run without its values: {first}"
    if isinstance(error, MemoryError):
        return "the script needs more host memory than there is"
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def report(failure: Failure, stream: Any = None) -> None:
    stream = stream or sys.stderr
    print(f"carma: {failure}", file=stream)
    print(failure.to_json(), file=stream, flush=True)
