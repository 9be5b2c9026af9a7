"""What went wrong, in terms of the user's script: file, line, source text and the reason in one sentence."""

from __future__ import annotations

import functools
import glob
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

from . import reasons


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
    # of `pip install --target`
    folders |= {folder for folder in sys.path if any(glob.iglob(os.path.join(glob.escape(folder), "*.dist-info")))}
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def is_users(file: str) -> bool:
    if file.startswith(("<", *_foreign_folders())):
        return False
    return not os.path.realpath(file).startswith(_foreign_folders())


def of_exception(error: BaseException) -> Failure:
    """The last place in the user's own code on the way to the error."""
    reason = reasons.reason_of(error)
    if isinstance(error, SyntaxError) and error.filename:
        return Failure(reason, error.filename, error.lineno, (error.text or "").strip())
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    if not frames:
        return Failure(reason)
    frame = frames[-1]
    code = frame.line or linecache.getline(frame.filename, frame.lineno or 0).strip()
    return Failure(reason, frame.filename, frame.lineno, code)


def report(failure: Failure, as_json: bool = False, stream: Any = None) -> None:
    stream = stream or sys.stderr
    print(f"carma: {failure}", file=stream, flush=True)
    if as_json:
        print(failure.to_json(), file=stream, flush=True)
