"""The data loaders of a script: which of them feeds training, how large their batches are, and who may end them early."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import TYPE_CHECKING, Any, Iterator, Optional, Protocol

import torch
import torch.utils.data.dataloader as dataloader

from .outputs import all_tensors
from .patches import Patches
from .quiet import unseen

if TYPE_CHECKING:
    from .phases import Phases


class Loader:
    """What is known of one `DataLoader`."""

    def __init__(self, loader: Any) -> None:
        self.loader = weakref.ref(loader)
        self.trains = False
        self.was_read = False
        self.batches = 0
        self.most = 0
        """Elements of the largest batch."""
        self.least = 0
        self.leading: Optional[int] = None

    @property
    def varies(self) -> bool:
        return self.most > self.least

    @property
    def batch(self) -> Optional[int]:
        """Samples of a batch."""
        loader = self.loader()
        size = getattr(loader, "batch_size", None) or getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
        return size if isinstance(size, int) and size > 0 else self.leading

    def gave(self, batch: Any) -> None:
        tensors = list(all_tensors(batch))
        elements = sum(tensor.numel() for tensor in tensors)
        self.least = min(self.least, elements) if self.batches else elements
        self.most = max(self.most, elements)
        self.batches += 1
        if self.leading is None:
            self.leading = next((int(tensor.shape[0]) for tensor in tensors if tensor.dim()), None)


class Reading:
    """One pass over a loader."""

    def __init__(self, loader: Loader, source: Any) -> None:
        self.loader = loader
        self.source = source  # an iterator alone does not keep its loader
        self.given = 0
        self.passes = -1  # backward passes when the last batch was given
        self.with_gradients = False
        self.began_after_training = False
        self.has_ended = False
        self.live: list[dict[int, int]] = []


class End(Protocol):
    """What comes after the wanted iterations (see `after_training`)."""

    has_begun: bool

    def asked(self, reading: Reading, iterator: Any) -> Any: ...


class Batches:
    def __init__(self, phases: "Phases") -> None:
        self._phases = phases
        self._loaders: weakref.WeakKeyDictionary[Any, Loader] = weakref.WeakKeyDictionary()
        self._readings: weakref.WeakKeyDictionary[Any, Reading] = weakref.WeakKeyDictionary()
        self._last: Optional[Reading] = None
        self._let_ended: set[type] = set()
        self.end: Optional[End] = None

    def install(self, patches: Patches) -> None:
        base: Any = dataloader._BaseDataLoaderIter
        initialise, following = base.__init__, base.__next__
        construct = dataloader.DataLoader.__init__

        @functools.wraps(construct)
        def constructed(loader: Any, *args: Any, **kwargs: Any) -> None:
            construct(loader, *args, **kwargs)
            self.of(loader)
            self._let_end(type(loader), patches)

        def init(iterator: Any, loader: Any) -> None:
            initialise(iterator, loader)
            reading = self._readings[iterator] = Reading(self.of(loader), loader)
            reading.began_after_training = self.end is not None and self.end.has_begun

        def next_batch(iterator: Any) -> Any:
            reading = self._readings.get(iterator)
            if reading is None:
                return following(iterator)
            self._asked(reading)
            batch = self.end.asked(reading, iterator) if self.end is not None and self.end.has_begun else None
            batch = following(iterator) if batch is None else batch
            self._given(reading, batch)
            return batch

        patches.set(dataloader.DataLoader, "__init__", constructed)
        patches.set(base, "__init__", init)
        patches.set(base, "__next__", next_batch)

    def _let_end(self, cls: type, patches: Patches) -> None:
        """Loaders that count their batches by themselves (`yield next(self.iterator)`) take an early end for an error."""
        own = next((base for base in cls.__mro__ if "__iter__" in vars(base)), dataloader.DataLoader)
        if own is dataloader.DataLoader or own in self._let_ended or not inspect.isgeneratorfunction(vars(own)["__iter__"]):
            return
        self._let_ended.add(own)
        iterate = vars(own)["__iter__"]

        @functools.wraps(iterate)
        def ending(loader: Any) -> Iterator[Any]:
            try:
                yield from iterate(loader)
            except RuntimeError as error:
                if not isinstance(error.__cause__, StopIteration) or self.end is None or not self.end.has_begun:
                    raise

        patches.set(own, "__iter__", ending)

    def of(self, loader: Any) -> Loader:
        found = self._loaders.get(loader)
        if found is None:
            found = self._loaders[loader] = Loader(loader)
        return found

    def _asked(self, reading: Reading) -> None:
        """A loader feeds training if a backward pass came between two of its batches."""
        if reading.given and reading.with_gradients and self._phases.passes > reading.passes:
            reading.loader.trains = True
        if self._last is reading:
            self._last = None  # it may have no further batch

    def _given(self, reading: Reading, batch: Any) -> None:
        with unseen():
            reading.loader.gave(batch)
        reading.given += 1
        reading.loader.was_read = True
        reading.passes = self._phases.passes
        reading.with_gradients = torch.is_grad_enabled()
        if reading.with_gradients:
            self._last = reading

    def training(self) -> list[Loader]:
        """Loaders that feed training: to be asked right after a step."""
        if self._last is not None:
            self._last.loader.trains = True
        return [loader for loader in list(self._loaders.values()) if loader.trains]

    def unread(self) -> list[Loader]:
        return [loader for loader in list(self._loaders.values()) if not loader.was_read]
