"""Jobs of the manager, one or many: what they do, how they ended, and how they look in notebooks."""

import asyncio
import html
import time
from collections import Counter
from collections.abc import Sequence

__all__ = ["Job", "JobFailed", "Jobs", "NoManager", "Problem", "Result"]

#: Seconds of one question for the end of a job, for those who await it.
_POLL = 5


class NoManager(Exception):
    """No manager answers here."""


class Problem(Exception):
    """The manager refused, and changed nothing."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class JobFailed(Exception):
    """A job did not succeed."""

    def __init__(self, result):
        lines = "".join(f"\n  {line}" for line in result.last_lines)
        super().__init__(f"job {result.name} {result.outcome}{lines}")
        self.result = result


class Result:
    """How a job ended."""

    def __init__(self, detail):
        self.detail = detail
        self.id = detail["id"]
        #: Its name in commands: `12`, or `12_3` in an array.
        self.name = _name(detail)
        #: The last lines that it printed, if it failed.
        self.last_lines = (detail.get("last_output") or {}).get("lines", [])
        self.outcome = detail["outcome"]
        self.succeeded = detail["state"].get("outcome") == "succeeded"
        attempts = detail["attempts"]
        exit = attempts[-1]["exit"] if attempts else None
        self.exit_code = exit.get("code") if isinstance(exit, dict) else None

    def __repr__(self):
        return f"<Result of job {self.name}: {self.outcome}>"


class Job:
    """An accepted job. It is stored, and survives a crash of the manager."""

    def __init__(self, client, id, name=None):
        self._client = client
        self.id = id
        #: Its name in commands: `12`, or `12_3` in an array.
        self.name = name or str(id)

    @classmethod
    def of(cls, client, detail):
        """The job of an answer of the manager."""
        return cls(client, detail["id"], _name(detail))

    def __repr__(self):
        return f"<Job {self.name}>"

    def _repr_html_(self):
        """The job in a notebook: its state, and the last lines of a failed one."""
        return _table([self.show()])

    def __await__(self):
        """Awaits its end: `result = await job`."""
        return self._ended().__await__()

    async def _ended(self):
        while True:
            detail = await asyncio.to_thread(self._client.get, f"/v1/jobs/{self.id}/wait", seconds=_POLL)
            if detail["phase"] == "done":
                return Result(detail)

    def show(self):
        """All details."""
        return self._client.get(f"/v1/jobs/{self.id}")

    @property
    def state(self):
        """Its state: held, queued, starting, running, recovering, preempted or done."""
        return self.show()["phase"]

    def why(self):
        """Why it waits, as text."""
        return self._client.get(f"/v1/jobs/{self.id}/why")["text"]

    def wait(self, timeout=None):
        """Waits until the job has ended; raises TimeoutError after this many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 30 if end is None else max(0.0, end - time.monotonic())
            detail = self._client.get(f"/v1/jobs/{self.id}/wait", seconds=min(30, int(left) + 1))
            if detail["phase"] == "done":
                return Result(detail)
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"job {self.name} is {detail['phase']} after {timeout} s")

    def result(self, timeout=None):
        """Its output, once it has succeeded; raises JobFailed otherwise."""
        result = self.wait(timeout)
        if not result.succeeded:
            raise JobFailed(result)
        return self.logs()

    def logs(self, stream="stdout", attempt=None, lines=None):
        """Its output so far, as text: `stdout`, `stderr`, or `both` as they were written."""
        return b"".join(self._stream(stream, attempt, lines, False)).decode(errors="replace")

    def follow(self, stream="stdout", attempt=None):
        """Its output as it grows, in pieces of bytes, until the attempt has ended."""
        return self._stream(stream, attempt, None, True)

    def _stream(self, stream, attempt, lines, follow):
        query = {"stream": stream, "attempt": attempt, "lines": lines, "follow": "true" if follow else "false"}
        with self._client.open("GET", f"/v1/jobs/{self.id}/logs", query) as answer:
            while piece := answer.read1(65536):
                yield piece

    def cancel(self):
        """Cancels it."""
        self._act("cancel")

    def hold(self):
        """Holds it in the queue."""
        self._act("hold")

    def release(self):
        """Releases it after a hold."""
        self._act("release")

    def requeue(self):
        """Stops it, after a checkpoint if it can, and puts it back into the queue."""
        self._act("requeue")

    def _act(self, act):
        acted = self._client.post(f"/v1/jobs/{self.id}/{act}")
        if acted.get("not_done"):
            raise Problem("conflict", acted["not_done"][0]["reason"])

    def resubmit(self):
        """Submits the same once more, as a new job."""
        return Job(self._client, self._client.post(f"/v1/jobs/{self.id}/resubmit", {})["jobs"][0])


class Jobs(Sequence):
    """The jobs of an array or a sweep."""

    def __init__(self, client, jobs):
        self._client = client
        self._jobs = list(jobs)

    def __getitem__(self, place):
        return self._jobs[place]

    def __len__(self):
        return len(self._jobs)

    def __repr__(self):
        return f"<{len(self)} jobs, {self[0].name} to {self[-1].name}>" if self else "<no jobs>"

    def _repr_html_(self):
        """The jobs in a notebook."""
        counts = ", ".join(f"{count} {state}" for state, count in sorted(self.states().items()))
        return f"<p>{html.escape(counts)}</p>" + _table(job.show() for job in self._jobs[:_MOST_ROWS])

    def states(self):
        """How many jobs are in each state."""
        if not self:
            return Counter()
        array = self._jobs[0].id
        ids, counts, before = {job.id for job in self._jobs}, Counter(), None
        while True:
            page = self._client.history(array=array, limit=1000, before=before)
            counts.update(row["phase"] for row in page if row["id"] in ids)
            if len(page) < 1000:
                return counts
            before = page[-1]["id"]

    def wait(self, timeout=None):
        """Waits until all have ended; raises TimeoutError after this many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        return [job.wait(None if end is None else max(0.0, end - time.monotonic())) for job in self._jobs]

    def __await__(self):
        """Awaits the end of all: `results = await jobs`."""
        return self._ended().__await__()

    async def _ended(self):
        # One after the other: each takes a thread while it is asked for.
        return [await job for job in self._jobs]

    async def as_completed(self):
        """The results, each as soon as its job has ended."""
        tasks = [asyncio.ensure_future(job._ended()) for job in self._jobs]
        try:
            for ended in asyncio.as_completed(tasks):
                yield await ended
        finally:
            for task in tasks:
                task.cancel()

    def cancel(self):
        """Cancels all that have not ended."""
        for job in self._jobs:
            try:
                job.cancel()
            except Problem as problem:
                if problem.kind != "conflict":
                    raise


#: Rows of a table in a notebook.
_MOST_ROWS = 50


def _name(detail):
    place = detail.get("array")
    return f"{place['array']}_{place['index']}" if place else str(detail["id"])


def _table(details):
    """Jobs as a table of HTML."""
    rows = "".join(_row(detail) for detail in details)
    heads = "".join(f"<th>{head}</th>" for head in ("Job", "Name", "State", "GPUs", "Peak memory"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _row(detail):
    attempts = detail["attempts"]
    devices = [granted["device"] for granted in attempts[-1]["placement"]["devices"]] if attempts else []
    peaks = [peak for attempt in attempts for peak in attempt["peaks"]]
    peak = f"{max(peaks) / 1024:.1f} GiB" if peaks else ""
    cells = [_name(detail), detail["request"].get("name") or "", detail["outcome"] or detail["phase"], ", ".join(devices), peak]
    row = "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
    lines = (detail.get("last_output") or {}).get("lines", [])
    text = html.escape("\n".join(lines))
    return row + (f'<tr><td colspan="5"><pre>{text}</pre></td></tr>' if lines else "")
