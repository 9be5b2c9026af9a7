"""A thin client of CARMA's manager: submit jobs, wait for them, and read their output.

>>> from carma.client import Client
>>> job = Client().submit(["python", "train.py"], gpus=1, memory="12GiB", name="resnet")   # doctest: +SKIP
>>> job.wait().succeeded                                                                  # doctest: +SKIP
True

It needs nothing but Python. The manager is found as the command line finds it: what ``CARMA_SOCKET`` names, the user's own, then the machine's.
"""

import http.client
import json
import os
import re
import socket
import time
import urllib.parse
import uuid
from pathlib import Path

__all__ = ["Client", "Job", "JobFailed", "NoManager", "Problem", "Result"]

_UNITS = {"": 1, "k": 2**10 / 2**20, "m": 1, "g": 2**10, "t": 2**20}


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
        super().__init__(f"job {result.id} {result.outcome}")
        self.result = result


class Result:
    """How a job ended."""

    def __init__(self, detail):
        self.detail = detail
        self.id = detail["id"]
        self.outcome = detail["outcome"]
        self.succeeded = detail["state"].get("outcome") == "succeeded"
        attempts = detail["attempts"]
        exit = attempts[-1]["exit"] if attempts else None
        self.exit_code = exit.get("code") if isinstance(exit, dict) else None

    def __repr__(self):
        return f"<Result of job {self.id}: {self.outcome}>"


class Job:
    """An accepted job. It is stored, and survives a crash of the manager."""

    def __init__(self, client, id):
        self._client = client
        self.id = id

    def __repr__(self):
        return f"<Job {self.id}>"

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
                raise TimeoutError(f"job {self.id} is {detail['phase']} after {timeout} s")

    def result(self, timeout=None):
        """Its output, once it has succeeded; raises JobFailed otherwise."""
        result = self.wait(timeout)
        if not result.succeeded:
            raise JobFailed(result)
        return self.logs()

    def logs(self, stream="stdout", attempt=None, lines=None):
        """Its output so far, as text."""
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


class Client:
    """A client of the manager's API. Every method opens its own connection, so threads may share the client."""

    def __init__(self, socket=None, timeout=None):
        self._sockets = [os.fspath(socket)] if socket else _sockets()
        self._timeout = timeout

    def submit(
        self,
        command,
        *,
        name=None,
        gpus=1,
        memory=None,
        cpus=None,
        host_memory=None,
        time_limit=None,
        directory=None,
        environment=None,
        exclusive=False,
        mode="auto",
        priority=0,
        hold=False,
        after=(),
        retries=0,
        model=None,
        batch=None,
        output=None,
        error=None,
    ):
        """Submits a job, and returns when it is stored.

        ``command`` is a list of words, as they are, or the text of a script that begins with ``#!``. Memory is MiB, or a text such as "12GiB";
        the time limit is in seconds. ``after`` are jobs that must have succeeded.
        """
        if isinstance(command, str):
            command = {"script": {"text": command}}
        else:
            command = {"program": [os.fspath(word) for word in command]}
        job = {
            "name": name,
            "command": command,
            "directory": os.path.abspath(directory or os.getcwd()),
            "environment": dict(os.environ if environment is None else environment),
            "umask": _umask(),
            "output": output and os.path.abspath(output),
            "error": error and os.path.abspath(error),
            "resources": {
                "gpus": gpus,
                "memory": _mebibytes(memory),
                "cpus": cpus,
                "host_memory": _mebibytes(host_memory),
                "time_limit": time_limit,
                "exclusive": exclusive,
                "mode": mode,
            },
            "schedule": {
                "priority": priority,
                "hold": hold,
                "after": [{"job": str(getattr(job, "id", job)), "condition": "ok"} for job in after],
            },
            "retries": {"failure": retries},
            "hints": {"model": model and os.path.abspath(model), "batch": batch},
        }
        job = {key: value for key, value in job.items() if value is not None}
        return Job(self, self._submit({"job": job})["jobs"][0])

    def _submit(self, submission):
        """Submits; a broken connection is tried once more, and the key keeps the job from being submitted twice."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        try:
            return self.post("/v1/jobs", submission, headers)
        except (ConnectionError, http.client.IncompleteRead):
            time.sleep(1)
            return self.post("/v1/jobs", submission, headers)

    def job(self, name):
        """A job by its number, as `last`, or as `@name`."""
        return Job(self, self.get(f"/v1/jobs/{urllib.parse.quote(str(name))}")["id"])

    def queue(self, **query):
        """Unfinished jobs; all of them, page by page, unless ``each`` or ``limit`` is given."""
        if "each" in query or "limit" in query:
            return self.get("/v1/queue", **query)["jobs"]
        page = self.get("/v1/queue", limit=1000, **query)
        jobs = page["jobs"]
        while page.get("next"):
            page = self.get("/v1/queue", limit=1000, after=page["next"], **query)
            jobs += page["jobs"]
        return jobs

    def history(self, **query):
        """Jobs, the latest first; 100 unless ``limit`` is given, at most 1,000. The next page is ``before`` the last job."""
        return self.get("/v1/history", **query)

    def gpus(self):
        """The GPUs and their jobs."""
        return self.get("/v1/gpus")

    def status(self):
        """The status of the manager."""
        return self.get("/v1/status")

    def events(self, after=None):
        """Live events from this call on: pairs of an event's name and its content."""
        return _events(self.open("GET", "/v1/events", {"after": after}))

    def get(self, path, **query):
        """The answer to a GET request."""
        with self.open("GET", path, query) as answer:
            return json.load(answer)

    def post(self, path, body=None, headers=None):
        """The answer to a request that changes something."""
        with self.open("POST", path, {}, body, headers) as answer:
            return json.loads(answer.read() or b"null")

    def open(self, method, path, query, body=None, headers=None):
        """The open response; the caller closes it."""
        query = urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})
        connection = self._connect()
        headers = {**(headers or {}), **({"Content-Type": "application/json"} if body is not None else {})}
        connection.request(method, f"{path}?{query}" if query else path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status >= 400:
            text = answer.read()
            connection.close()
            try:
                problem = json.loads(text)
                raise Problem(problem["kind"], problem["message"])
            except (ValueError, KeyError, TypeError):
                raise Problem("internal", f"status {answer.status}: {text[:200]!r}") from None
        return answer

    def _connect(self):
        for path in self._sockets:
            connection = _UnixConnection(path, self._timeout)
            try:
                connection.connect()
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                continue
        raise NoManager(f"no manager answers at {' or '.join(self._sockets)}: start one with `carma up`")


def _events(answer):
    """Server-sent events of an open response."""
    with answer:
        event, data = None, []
        for line in answer:
            line = line.decode().rstrip("\r\n")
            if line.startswith("event:"):
                event = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
            elif not line and data:
                yield event, json.loads("\n".join(data))
                event, data = None, []


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            raise


def _sockets():
    """Possible sockets of a manager, the user's own first."""
    if os.environ.get("CARMA_SOCKET"):
        return [os.environ["CARMA_SOCKET"]]
    system = "/run/carma/carma.sock"
    if os.geteuid() == 0:
        return [system]
    state = os.environ.get("XDG_STATE_HOME", "")
    state = Path(state if os.path.isabs(state) else Path.home() / ".local/state") / "carma"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    own = Path(runtime) / "carma" if os.path.isabs(runtime) else state
    return [str(own / "carma.sock"), system]


def _umask():
    """Our umask; `os.umask` would change it, also for other threads."""
    try:
        written = re.search(r"^Umask:\s*([0-7]+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return written and written[1]


def _mebibytes(memory):
    if memory is None or isinstance(memory, int):
        return memory
    written = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", str(memory), re.IGNORECASE)
    if not written:
        raise ValueError(f"{memory!r} is no amount of memory: write 12GiB, 800MiB, or a number of MiB")
    return max(1, round(float(written[1]) * _UNITS[written[2].lower()]))
