"""Emulated GPUs for Python scripts: what `carma emu train` does, from your own code. Needs the standard library alone.

A script takes memory, trains at the speed its neighbours leave it, and meets PyTorch's errors:

    from carma import emu

    with emu.Gpu("resnet50_imagenet_bs64") as gpu:      # a workload of the catalogue,
        gpu.train(seconds=30, progress=print)           # or emu.Gpu(peak="6GiB", smact=0.6)
        gpu.hold("30GiB")                               # may raise emu.OutOfMemoryError

Run it by `carma emu run -- python script.py`, or after `eval "$(carma emu env)"`. It obeys CUDA_VISIBLE_DEVICES. A process can be one
`Gpu` at a time; what it holds is given back when it is closed, or when the process ends in whatever way. Seconds are emulated ones.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
#: Real seconds between polls of the progress, at most and at least.
LONGEST, SHORTEST = 0.1, 0.001


class OutOfMemoryError(RuntimeError):
    """Out of memory, with the message of `torch.OutOfMemoryError`."""


def size(memory: int | str) -> int:
    """Bytes, from a number or a text such as "3GiB"."""
    if isinstance(memory, int) and not isinstance(memory, bool):
        if not 0 <= memory < 1 << 64:
            raise ValueError(f"{memory} is not a size: write bytes from 0 on")
        return memory
    if not isinstance(memory, str):
        raise TypeError(f"{memory!r} is not a size: write whole bytes, or a text such as '3GiB'")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", memory)
    unit = UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{memory!r} is not a size: write bytes, or 512MiB, 3GiB")
    return int(float(match[1]) * unit)


def number(name: str, value: float, fits: Callable[[float], bool], range_: str) -> float:
    """A value that must be a number of this range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number, not {value!r}")
    if not fits(value):
        raise ValueError(f"{name} cannot be {value}: give {range_}")
    return value


def counter(name: str, value: float) -> float:
    """A profiling counter."""
    return number(name, value, lambda share: 0 <= share <= 1, "0 to 1")


def folders(environment: dict[str, str]) -> Iterator[Path]:
    """Possible paths of the stand-in library, the likeliest first."""
    if environment.get("CARMA_EMU"):
        yield Path(environment["CARMA_EMU"], "lib")
        return
    yield from (Path(folder) for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder)
    yield Path(f"/dev/shm/carma-emu-{os.getuid()}/lib")


def load() -> ctypes.CDLL:
    """The stand-in library of the emulated GPUs."""
    for file in (folder / LIBRARY for folder in folders(dict(os.environ))):
        # A real driver's library lacks our functions.
        if file.exists() and hasattr(library := ctypes.CDLL(str(file)), "carmaEmuAttach"):
            return library
    named = os.environ.get("CARMA_EMU")
    where = f" in {named}, which CARMA_EMU names" if named else ""
    raise RuntimeError(f"no emulated GPUs{where}: `carma emu up` creates them")


class Gpu:
    """This process on the emulated GPUs it sees: as a workload of the catalogue, or on one GPU with counters of its own from 0 to 1.

    Counters are given as monitors are to read them while it trains alone. Without others, SMOCC is half of SMACT, the rest the same as it.
    """

    def __init__(
        self,
        workload: str | None = None,
        *,
        peak: int | str = 0,
        smact: float = 0.5,
        smocc: float | None = None,
        drama: float | None = None,
        utilisation: float | None = None,
    ) -> None:
        if not isinstance(workload, (str, type(None))):
            raise TypeError(f"a workload is a name of the catalogue, not {workload!r}")
        counter("smact", smact)
        given = {"smocc": (smocc, smact / 2), "drama": (drama, smact), "utilisation": (utilisation, smact)}
        others = [counter(name, other if value is None else value) for name, (value, other) in given.items()]
        bytes_of_peak = size(peak)
        self._library = load()
        if workload is not None:
            self._call("Attach", workload.encode())
        else:
            self._call("AttachAs", ctypes.c_uint64(bytes_of_peak), *map(ctypes.c_double, (smact, *others)))
        gpus, seconds = self._ask("Workload", ctypes.c_uint32, ctypes.c_double)
        #: How many GPUs it is on, and the seconds its workload takes alone.
        self.count, self.seconds = gpus, seconds

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the GPUs; memory is given back."""
        self._call("Detach")

    def hold(self, memory: int | str, gpu: int = 0) -> None:
        """Sets the memory it holds on one of its GPUs."""
        self._call("Hold", ctypes.c_uint32(gpu), ctypes.c_uint64(size(memory)))

    def held(self, gpu: int = 0) -> int:
        """Bytes it holds on one of its GPUs."""
        return self._ask("Memory", ctypes.c_uint64, ctypes.c_uint64, first=ctypes.c_uint32(gpu))[0]

    def work(self) -> tuple[float, float]:
        """Seconds of training done so far, in time alone, and the current rate per second."""
        return self._ask("Work", ctypes.c_double, ctypes.c_double)

    def train(self, seconds: float | None = None, progress: Callable[[float], object] | None = None) -> None:
        """Takes its peak memory and trains for this many seconds of time alone. `progress` is called with the done share."""
        if seconds is None and not self.seconds:
            raise ValueError("give the seconds to train for: only workloads of the catalogue have their own")
        seconds = self.seconds if seconds is None else number("seconds", seconds, lambda time: 0 < time < math.inf, "more than 0")
        for gpu in range(self.count):
            held, peak = self._ask("Memory", ctypes.c_uint64, ctypes.c_uint64, first=ctypes.c_uint32(gpu))
            self.hold(max(held, peak), gpu)
        before, (_, factor) = self.work()[0], self._ask("Now", ctypes.c_double, ctypes.c_double)
        self._call("Run", 1)
        try:
            while (work := self.work())[0] - before < seconds:
                if progress:
                    progress((work[0] - before) / seconds)
                left = (before + seconds - work[0]) / max(work[1], 1e-9) / factor
                time.sleep(min(max(left, SHORTEST), LONGEST))
        finally:
            self._call("Run", 0)
        if progress:
            progress(1.0)

    def _ask(self, name: str, *types: type, first: object = None) -> tuple:
        """Calls a function that answers two values."""
        answers = [type_() for type_ in types]
        self._call(name, *([] if first is None else [first]), *map(ctypes.byref, answers))
        return tuple(answer.value for answer in answers)

    def _call(self, name: str, *arguments: object) -> None:
        code = self._library[f"carmaEmu{name}"](*arguments)
        if code:
            words = ctypes.create_string_buffer(4096)
            self._library.carmaEmuError(words, ctypes.c_size_t(len(words)))
            raise {1: OutOfMemoryError, 2: RuntimeError}.get(code, ValueError)(words.value.decode(errors="replace"))
