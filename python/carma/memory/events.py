"""The trace: what is allocated and freed, in order, as the lines of a `carma-memory-trace 1` file."""

from __future__ import annotations

import json
from typing import Any, Iterable

FORMAT = "carma-memory-trace 1"

WEIGHT, BUFFER, GRADIENT, OPTIMIZER_STATE = "w", "b", "g", "o"
INPUT, ACTIVATION, TEMPORARY = "i", "a", "t"


class Trace:
    """Collects events in memory. A trace has some ten thousand lines an iteration, and its header is known only at the end."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.facts: dict[str, Any] = {}
        self.has_weights = False
        self._line_of = [-1]  # by identity: where the allocation is in `lines`
        self._closed = False

    def allocate(self, size: int, kind: str, device: int) -> int:
        identity = len(self._line_of)
        self._line_of.append(-1 if self._closed else len(self.lines))
        self.has_weights |= kind == WEIGHT
        self._add(f"+ {identity} {size} {kind}{_suffix(device)}")
        return identity

    def free(self, identity: int) -> None:
        self._add(f"- {identity}")

    def transient(self, size: int, kind: str, device: int) -> None:
        """Memory that an operator asks for and gives back before it returns."""
        if size > 0:
            self.free(self.allocate(size, kind, device))

    def reclassify(self, identity: int, kind: str) -> None:
        """What something is turns out later: a gradient at the optimizer's step. It was that from its allocation on."""
        self.has_weights |= kind == WEIGHT
        position = self._line_of[identity]
        if position >= 0:
            words = self.lines[position].split()
            words[3] = kind
            self.lines[position] = " ".join(words)

    def note(self, text: str) -> None:
        """A sentence for the reader of the estimate: what could not be followed, and what that means. Said once."""
        notes = self.facts.setdefault("notes", [])
        if text not in notes:
            notes.append(text)

    def mark(self, name: str) -> None:
        self._add(f"@ {name}")

    def convolution(self, direction: str, numbers: Iterable[int], dtype: str, transposed: bool) -> None:
        shape = " ".join(str(number) for number in numbers)
        self._add(f"c {direction} {shape} {dtype}{' t' if transposed else ''}")

    def matrix_product(self, device: int) -> None:
        self._add(f"m{_suffix(device)}")

    def close(self) -> None:
        """What comes after the end (a script unwinding) is no part of the trace."""
        if not self._closed:
            self.mark("end")
            self._closed = True

    def _add(self, line: str) -> None:
        if not self._closed:
            self.lines.append(line)

    def write(self, path: str) -> None:
        with open(path, "w", encoding="utf-8", buffering=1 << 20) as file:
            file.write(f"{FORMAT}\n{json.dumps(self.facts)}\n")
            file.writelines(f"{line}\n" for line in self.lines)


def _suffix(device: int) -> str:
    return "" if device == 0 else f" {device}"
