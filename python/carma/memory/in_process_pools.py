"""Pools and managers of `multiprocessing` that work in this process, where tensors and files of the dry run are."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import multiprocessing.context
import queue
import threading
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Iterable, Iterator, Optional

from .import_hooks import ImportHooks
from .patches import Patches


def install(patches: Patches, hooks: ImportHooks) -> None:
    replace_in(patches, multiprocessing.context)
    for name, method in (("Pool", Pool), ("Manager", Manager)):
        patches.set(multiprocessing, name, method)
    patches.set(concurrent.futures, "ProcessPoolExecutor", Executor)
    patches.set(concurrent.futures.process, "ProcessPoolExecutor", Executor)
    # the twin of `multiprocessing` that data set libraries use
    hooks.when_imported("multiprocess.context", lambda module: replace_in(patches, module))
    hooks.when_imported("multiprocess", lambda module: [patches.set(module, n, m) for n, m in (("Pool", Pool), ("Manager", Manager))])


def replace_in(patches: Patches, module: ModuleType) -> None:
    patches.set(module.BaseContext, "Pool", lambda self, *args, **kwargs: Pool(*args, **kwargs))
    patches.set(module.BaseContext, "Manager", lambda self: Manager())


class Result:
    """The result of `apply_async` and its like."""

    def __init__(self, compute: Callable[[], Any], callback: Any = None, error_callback: Any = None) -> None:
        self._value: Any = None
        self._error: Optional[Exception] = None
        try:
            self._value = compute()
        except Exception as error:
            self._error = error
            if error_callback is not None:
                error_callback(error)
        else:
            if callback is not None:
                callback(self._value)

    def get(self, timeout: Any = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self, timeout: Any = None) -> None:
        return None

    def ready(self) -> bool:
        return True

    def successful(self) -> bool:
        return self._error is None


class Pool:
    def __init__(self, processes: Any = None, initializer: Any = None, initargs: Iterable[Any] = (), *_: Any, **__: Any) -> None:
        if initializer is not None:
            initializer(*initargs)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def map(self, function: Any, values: Iterable[Any], chunksize: Any = None) -> list[Any]:
        return [function(value) for value in values]

    def starmap(self, function: Any, values: Iterable[Any], chunksize: Any = None) -> list[Any]:
        return [function(*value) for value in values]

    def imap(self, function: Any, values: Iterable[Any], chunksize: Any = 1) -> Iterator[Any]:
        return (function(value) for value in values)

    imap_unordered = imap

    def apply(self, function: Any, args: Any = (), kwds: Any = None) -> Any:
        return function(*args, **(kwds or {}))

    def apply_async(self, function: Any, args: Any = (), kwds: Any = None, callback: Any = None, error_callback: Any = None) -> Result:
        return Result(lambda: function(*args, **(kwds or {})), callback, error_callback)

    def map_async(self, function: Any, values: Any, chunksize: Any = None, callback: Any = None, error_callback: Any = None) -> Result:
        return Result(lambda: self.map(function, values), callback, error_callback)

    def starmap_async(self, function: Any, values: Any, chunksize: Any = None, callback: Any = None, error_callback: Any = None) -> Result:
        return Result(lambda: self.starmap(function, values), callback, error_callback)

    close = join = terminate = lambda self: None  # noqa: E731


class Manager:
    """Objects that processes would share."""

    dict, list, Queue, JoinableQueue = dict, list, queue.Queue, queue.Queue
    Lock, RLock, Event, Condition = threading.Lock, threading.RLock, threading.Event, threading.Condition
    Semaphore, Barrier = threading.Semaphore, threading.Barrier
    Namespace, Pool = SimpleNamespace, Pool

    def __enter__(self) -> "Manager":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def Value(self, _: Any, value: Any, *__: Any) -> SimpleNamespace:  # noqa: N802, the name is that of `multiprocessing`
        return SimpleNamespace(value=value, get=lambda: value)

    start = shutdown = connect = lambda self, *_, **__: None  # noqa: E731


class Executor(concurrent.futures.Executor):
    def __init__(self, max_workers: Any = None, mp_context: Any = None, initializer: Any = None, initargs: Any = (), **_: Any) -> None:
        if initializer is not None:
            initializer(*initargs)

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future:
        future: concurrent.futures.Future = concurrent.futures.Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
