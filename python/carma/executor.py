"""Functions as jobs, with the interface of `concurrent.futures`: the calls wait in CARMA's queue and run on its GPUs.

>>> from carma import Executor
>>> with Executor(gpus=1, memory="12GiB", time_limit=7200) as executor:     # doctest: +SKIP
...     future = executor.submit(train, lr=0.1)
...     losses = list(executor.map(train, [0.1, 0.01, 0.001]))
...     print(future.job.id, future.result(), future.stdout())

The jobs live in the manager: they go on if this program ends, and `Executor().future(12)` finds job 12's result later.
"""

import concurrent.futures
import contextlib
import http.client
import inspect
import os
import sys
import threading
import time
from pathlib import Path

from carma import calls
from carma.call_future import CallFailed, CallFuture
from carma.calls import Call
from carma.client import Client, NoManager, Problem
from carma.request import job_request

__all__ = ["Call", "CallFailed", "CallFuture", "Executor"]

#: The program of the jobs.
PROGRAM = Path(__file__).with_name("run_call.py")
#: Seconds between attempts to reach a manager that went away.
RECONNECT = 1.0


class Executor(concurrent.futures.Executor):
    """Runs functions as jobs of CARMA.

    The options are those of `Client.submit`, except for those about Python environments, the output and ``hold``; and ``at_most`` (calls of one
    array that run at once). ``checkpoint`` means that the function saves its work on SIGTERM by itself.
    Calls and results are files in ``folder``, which the jobs' servers must see; in a folder of your own they stay when they were read.
    """

    def __init__(self, folder=None, client=None, **options):
        self._client = client or Client()
        self._folder = calls.default_folder() if folder is None else Path(folder)
        self._keep = folder is not None
        self._options = {}
        self._watcher = _Watcher(self._client)
        self._closed = False
        self.update_parameters(**options)

    def update_parameters(self, **options):
        """Changes options of later calls."""
        wrong = options.keys() - _OPTIONS
        if wrong:
            raise TypeError(f"no option {', '.join(sorted(wrong))}: there are {', '.join(sorted(_OPTIONS))}")
        self._options.update(options)

    def submit(self, function, /, *args, **kwargs):
        """Submits a call as a job, and returns when the job is stored."""
        return self._submit([Call(function, *args, **kwargs)], array=False)[0]

    def map_array(self, function, *iterables):
        """Submits a call for each of the zipped arguments as the jobs of one array; returns their futures."""
        return self._submit([Call(function, *args) for args in zip(*iterables)], array=True)

    def map(self, function, *iterables, timeout=None, chunksize=1):
        """The results in order, of calls that run as one array. `chunksize` changes nothing: each call is a job."""
        end = None if timeout is None else time.monotonic() + timeout
        futures = self.map_array(function, *iterables)

        def results():
            try:
                for future in futures:
                    yield future.result(None if end is None else end - time.monotonic())
            finally:
                for future in futures:
                    future.cancel()

        return results()

    def future(self, job):
        """The future of a call that was submitted earlier, by its job's number or name. Its result must not have been read yet."""
        job = self._client.job(job)
        request = job.show()["request"]
        folder = request["environment"].get(calls.FOLDER_VARIABLE)
        if folder is None:
            raise ValueError(f"job {job.id} is no call of an executor")
        index = (request.get("array") or {}).get("index", 0)
        future = CallFuture(job, folder, index, keep=Path(folder).parent != calls.default_folder())
        with self._watcher.submission() as watch:
            watch([future])
        self._watcher.check(future)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        """Accepts no more calls. Waits for those that were submitted; without ``wait`` their jobs go on."""
        self._closed = True
        futures = self._watcher.futures()
        if cancel_futures:
            for future in futures:
                future.cancel()
        if wait:
            concurrent.futures.wait(futures)

    def _submit(self, submitted, array):
        if self._closed:
            raise RuntimeError("the executor was shut down")
        if not submitted:
            return []
        folder = calls.new_folder(self._folder)
        try:
            for index, call in enumerate(submitted):
                calls.write_call(calls.call_file(folder, index), call)
            submission = _submission(self._options, submitted, folder, array)
            with self._watcher.submission() as watch:
                jobs = self._client._accepted(submission)
                futures = [CallFuture(job, folder, index, self._keep) for index, job in enumerate(jobs)]
                watch(futures)
            return futures
        except BaseException:
            for index in range(len(submitted)):
                calls.remove(folder, index)
            raise


class _Watcher:
    """Tells futures what becomes of their jobs, by a thread that reads the manager's events while there are any."""

    def __init__(self, client):
        self._client = client
        self._lock = threading.Lock()
        self._pending = {}
        self._thread = None

    def futures(self):
        with self._lock:
            return list(self._pending.values())

    @contextlib.contextmanager
    def submission(self):
        """While jobs are submitted, events wait: those of the new jobs find their futures."""
        with self._lock:
            events = None if self._thread else self._client.events()
            yield lambda futures: self._pending.update((future.job.id, future) for future in futures)
            if events is not None and self._pending:
                self._thread = threading.Thread(target=self._watch, args=(events,), name="carma-executor", daemon=True)
                self._thread.start()

    def check(self, future):
        """Asks for the state of a job. One that the manager no longer knows is over."""
        try:
            self._update(future.job.id, future.job.state)
        except Problem:
            self._update(future.job.id, "done")

    def _watch(self, events):
        while not self._is_finished():
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                for name, event in events:
                    if name == "job":
                        self._update(event["job"], event["state"])
                    if self._is_finished():
                        return
            # The manager went away, or dropped this client because it did not read in time.
            events = self._reconnect()
            with contextlib.suppress(OSError, NoManager, http.client.HTTPException, ValueError):
                for future in self.futures():
                    self.check(future)

    def _reconnect(self):
        while True:
            try:
                return self._client.events()
            except (OSError, NoManager, Problem, http.client.HTTPException):
                time.sleep(RECONNECT)

    def _is_finished(self):
        with self._lock:
            if self._pending:
                return False
            self._thread = None
            return True

    def _update(self, job, state):
        with self._lock:
            future = self._pending.get(job)
        if future is None:
            return
        if state == "done":
            future._ended()
            with self._lock:
                self._pending.pop(job, None)
        elif state in ("starting", "running"):
            future._started()


def _submission(options, submitted, folder, array):
    """What is sent to the manager."""
    options = dict(options)
    words = [calls.name_of(submitted[0].function)] if array else submitted[0].words()
    given = options.pop("environment", None)
    environment = dict(os.environ if given is None else given)
    # Of a job that submits jobs.
    environment.pop("CARMA_ARRAY_INDEX", None)
    environment[calls.FOLDER_VARIABLE] = str(folder)
    options["checkpoint"] = options.get("checkpoint", False) or hasattr(submitted[0].function, "checkpoint")
    options["name"] = options.get("name") or words[0].rpartition(".")[2].strip("<>")
    if not array:
        options.pop("at_most", None)
    job = job_request([sys.executable, PROGRAM, *words], environment=environment, **options)
    return {"job": job, "array": list(range(len(submitted)))} if array else {"job": job}


#: What an executor decides itself: it waits for its jobs, collects what they print, and runs them by its own Python.
_NOT_FOR_CALLS = frozenset("command hold output error conda venv image engine snapshot dry_run".split())
_OPTIONS = frozenset(inspect.signature(job_request).parameters) - _NOT_FOR_CALLS
