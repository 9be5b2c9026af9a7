"""The future of a call that runs as a job: its states follow those of the job."""

import concurrent.futures
import contextlib
import threading

from carma import calls
from carma.client import JobFailed, Problem

__all__ = ["CallFailed", "CallFuture", "RemoteTraceback"]


class CallFailed(JobFailed):
    """The job ended without a result: it was cancelled, ran out of memory or time, or its process died."""

    def __init__(self, result, last_words):
        remark = f"; its last words:\n{last_words}" if last_words else ""
        Exception.__init__(self, f"job {result.name} {result.outcome}{remark}")
        self.result = result
        self.last_words = last_words


class RemoteTraceback(Exception):
    """The traceback of an exception, as it was in the job."""

    def __str__(self):
        return f"\n{self.args[0]}"


class CallFuture(concurrent.futures.Future):
    """The result of a call. `job` is its job, to look at and to act on."""

    def __init__(self, job, folder, index, keep):
        super().__init__()
        self.job = job
        self._folder, self._index, self._keep = folder, index, keep
        self._settling = threading.Lock()

    def __repr__(self):
        state = "cancelled" if self.cancelled() else "done" if self.done() else "running" if self.running() else "pending"
        return f"<CallFuture of job {self.job.name}: {state}>"

    def cancel(self):
        """Cancels the job if it has not started, as executors do. `future.job.cancel()` ends one that runs."""
        if self.cancelled():
            return True
        if self.done() or self.running():
            return False
        try:
            # A job that starts meanwhile cannot be held.
            if self.job.state != "held":
                self.job.hold()
            self.job.cancel()
        except Problem:
            return False
        self._was_cancelled()
        return True

    def stdout(self):
        """What it printed so far."""
        return self.job.logs()

    def stderr(self):
        """What it wrote to stderr so far."""
        return self.job.logs("stderr")

    def _was_cancelled(self):
        with self._settling:
            if not self.done() and super().cancel():
                self.set_running_or_notify_cancel()
        self._clean_up()

    def _started(self):
        with self._settling:
            if not self.running() and not self.done():
                self.set_running_or_notify_cancel()

    def _ended(self):
        """Reads the result of a job that is over."""
        try:
            end = self.job.wait()
            # A call that raised has a result too, unless the job was ended in another way.
            outcome = calls.read_result(calls.result_file(self._folder, self._index))
        except FileNotFoundError:
            if not self.running() and end.detail["state"].get("outcome") == "cancelled":
                return self._was_cancelled()
            outcome = (False, CallFailed(end, self._last_words()), None)
        except Exception as error:
            # A result whose module is missing here, or a job that the manager no longer keeps.
            outcome = (False, error, None)
        self._settle(*outcome)
        self._clean_up()

    def _settle(self, returned, value, remote_traceback):
        if not returned:
            value = value or RuntimeError(f"job {self.job.id} raised an exception that cannot be sent")
            if remote_traceback:
                value.__cause__ = RemoteTraceback(remote_traceback)
        # Two threads may see the end.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            (self.set_result if returned else self.set_exception)(value)

    def _last_words(self):
        with contextlib.suppress(Exception):
            return self.job.logs("stderr", lines=10).strip()
        return ""

    def _clean_up(self):
        if not self._keep:
            calls.remove(self._folder, self._index)
