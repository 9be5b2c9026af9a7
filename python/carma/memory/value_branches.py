"""Branches that a script takes on values of a GPU which a dry run does not have: `if (scores > 0).any():`.

A branch that raises, and an assertion that fails, are not taken. Any other such branch in the user's own code is told, and so
is a selection by such values (`logits[mask]`).
"""

from __future__ import annotations

import ast
import os
import sys
from functools import lru_cache
from types import FrameType
from typing import Any, Optional

import torch

from .events import Trace
from .failure import is_users

MOST_NOTES = 5
LOOPS, LOOPS_LEFT_INSIDE = 64, 4096
"""A loop until a value is small enough must end: after so many equal answers comes the other. Loops with a `break` often
have a bound of their own."""
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_BETWEEN = tuple(TORCH + os.path.join(*name.split("/")) for name in (
    "_tensor.py", "overrides.py", "_ops.py", "_compile.py", "_dynamo/eval_frame.py", "utils/_python_dispatch.py", "utils/_device.py",
    "utils/_contextlib.py", "utils/_stats.py",
))
"""Files of PyTorch that a call of a script's own goes through."""


class ValueBranches:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._seen: set[tuple[str, int]] = set()
        self._asked: dict[tuple[str, int], int] = {}

    def decide(self, assumed: bool) -> bool:
        """The truth of a value that is not known, where the script asks for it."""
        frame = asking_frame()
        if frame is None:
            return assumed
        place = frame.f_code.co_filename, frame.f_lineno
        wanted = _that_does_not_fail(*place)
        if wanted is not None:
            return wanted
        asked = self._asked[place] = self._asked.get(place, 0) + 1
        if asked % (LOOPS if isinstance(_statement(*place), ast.While) else LOOPS_LEFT_INSIDE) == 0:
            return not assumed
        self._tell(place, f"takes a branch on a GPU value that is not known; the dry run assumed {str(assumed).lower()}")
        return assumed

    def selects(self, elements: int) -> None:
        """A selection by values that are not known, such as `logits[mask]`."""
        frame = asking_frame()
        if frame is not None:
            what = f"selects by GPU values that are not known; the dry run assumed half of {elements:,} elements, and more need more memory"
            self._tell((frame.f_code.co_filename, frame.f_lineno), what)

    def _tell(self, place: tuple[str, int], what: str) -> None:
        if place not in self._seen and len(self._seen) < MOST_NOTES and is_users(place[0]):
            self._seen.add(place)
            self._trace.note(f"{_shown(place[0])}:{place[1]} {what}")


def asking_frame(between: tuple[str, ...] = _BETWEEN) -> Optional[FrameType]:
    """The innermost frame outside of this package and of what is between it and the script."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_OWN, "<", *between)):
        frame = frame.f_back
    return frame


def _shown(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


@lru_cache(maxsize=None)
def _that_does_not_fail(file: str, line: int) -> Optional[bool]:
    """The answer that keeps the script from an error, if one of them leads to it."""
    statement = _statement(file, line)
    if isinstance(statement, ast.Assert):
        return _of_operand(statement.test, True)
    if isinstance(statement, ast.If):
        if _leaves(statement.body):
            return _of_operand(statement.test, False)
        if statement.orelse and _leaves(statement.orelse):
            return _of_operand(statement.test, True)
    return None


@lru_cache(maxsize=None)
def _statement(file: str, line: int) -> Optional[ast.stmt]:
    """The innermost statement that tests something at this line."""
    found: Optional[Any] = None
    for node in _tests(file):
        if node.test.lineno <= line <= (node.test.end_lineno or node.test.lineno):
            if found is None or node.test.lineno >= found.test.lineno:
                found = node
    return found


@lru_cache(maxsize=64)
def _tests(file: str) -> tuple[Any, ...]:
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.While, ast.Assert)))


def _of_operand(test: ast.expr, wanted: bool) -> Optional[bool]:
    """What the tensor must be for the whole test to be as wanted; None where it is combined with a negation."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, wanted = test.operand, not wanted
    if isinstance(test, ast.BoolOp) and any(isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) for part in test.values):
        return None
    return wanted


def _leaves(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Raise):
        return True
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    called = last.value.func
    return getattr(called, "attr", getattr(called, "id", "")) in ("exit", "_exit", "quit", "abort")
