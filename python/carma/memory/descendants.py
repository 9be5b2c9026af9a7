"""Processes that a script has started: none is left when the dry run ends."""

from __future__ import annotations

import ctypes
import os
import signal
import time

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 20


def adopt() -> None:
    """Grandchildren whose parent ends become children of this process, and are found at the end. Linux only."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return


def end_all(spare: frozenset[int] = frozenset()) -> None:
    """Ends all processes below this one, except those that were there before the script."""
    for _ in range(_ROUNDS):
        found = below(os.getpid()) - spare
        if not found:
            return
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                continue
        for process in found:
            try:
                os.waitpid(process, os.WNOHANG)
            except OSError:
                continue
        time.sleep(0.01)


def below(parent: int) -> frozenset[int]:
    """Children and their children, from /proc."""
    children: dict[int, list[int]] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return frozenset()
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(number)
    found: set[int] = set()
    waiting = [parent]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return frozenset(found)
