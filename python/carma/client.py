"""A thin client of CARMA's manager: submit jobs, wait for them, and read their output.

>>> from carma.client import Client
>>> job = Client().submit(["python", "train.py"], gpus=1, memory="12GiB", name="resnet")   # doctest: +SKIP
>>> job.wait().succeeded                                                                  # doctest: +SKIP
True

>>> jobs = Client().sweep(["python", "train.py", "--lr", "{lr}"], {"lr": [0.1, 0.01]})     # doctest: +SKIP
>>> [result.succeeded for result in jobs.wait()]                                          # doctest: +SKIP
[True, True]

Jobs can be awaited (``result = await job``), and show themselves in notebooks. It needs nothing but Python. The manager is found as the command line finds it: what ``CARMA_SOCKET`` names, the user's own, then the machine's.
"""

import http.client
import json
import os
import socket
import time
import urllib.parse
import uuid
from pathlib import Path

from .jobs import Job, JobFailed, Jobs, NoManager, Problem, Result
from .request import check_parameters, job_request

__all__ = ["Client", "Job", "JobFailed", "Jobs", "NoManager", "Problem", "Result"]


class Client:
    """A client of the manager's API. Every method opens its own connection, so threads may share the client."""

    def __init__(self, socket=None, timeout=None):
        self._sockets = [os.fspath(socket)] if socket else _sockets()
        self._timeout = timeout

    def submit(self, command, **options):
        """Submits a job, and returns when it is stored.

        ``command`` is a list of words, as they are, or the text of a script that begins with ``#!``. The options are those of ``carma submit``:

        - ``name``, ``directory``, ``environment`` (yours unless given), ``output`` and ``error`` (files for a copy of the output);
        - ``gpus``, ``memory``, ``cpus``, ``host_memory``, ``time_limit``, ``exclusive``, ``mode``. Memory is MiB, or a text such as "12GiB"; the
          time limit is seconds, a timedelta, or a text such as "2h";
        - ``conda``, ``venv``, ``image`` with ``engine``, ``snapshot`` (a copy of the code as it is now);
        - ``priority``, ``hold``, ``begin`` (a datetime, or seconds since 1970), ``after`` (jobs that must have succeeded), ``after_any`` (jobs that
          must have ended), ``wait_for_hardware``;
        - ``retries`` (after failures), ``memory_retries`` (after running out of memory), ``checkpoint`` (the job saves its work on SIGTERM and
          continues from it), ``on_hang`` ("report", "restart", "fail" or "ignore");
        - ``model``, ``batch`` and ``dry_run``, for the estimate.
        """
        return self._accepted({"job": job_request(command, **options)})[0]

    def submit_array(self, command, indices, *, at_most=None, **options):
        """Submits a job for each index, which a job finds in ``CARMA_ARRAY_INDEX``. ``at_most`` of them run at once."""
        job = job_request(command, at_most=at_most, **options)
        return self._accepted({"job": job, "array": [int(index) for index in indices]})

    def sweep(self, command, parameters, *, at_most=None, **options):
        """Submits a job for each combination of values: ``{"lr": [0.1, 0.01]}``. ``{lr}`` in the command stands for the value."""
        job = job_request(command, at_most=at_most, **options)
        check_parameters(job, parameters)
        values = [{"name": name, "values": [str(value) for value in values]} for name, values in parameters.items()]
        return self._accepted({"job": job, "parameters": values})

    def _accepted(self, submission):
        indices = submission.get("array")
        numbers = self._submit(submission)["jobs"]
        if indices is None and "parameters" not in submission:
            return [Job(self, number) for number in numbers]
        indices = range(len(numbers)) if indices is None else indices
        return Jobs(self, [Job(self, number, f"{numbers[0]}_{index}") for number, index in zip(numbers, indices)])

    def _submit(self, submission):
        """Submits; a broken connection is tried once more, and the key keeps the job from being submitted twice."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        try:
            return self.post("/v1/jobs", submission, headers)
        except (ConnectionError, http.client.IncompleteRead):
            time.sleep(1)
            return self.post("/v1/jobs", submission, headers)

    def job(self, name):
        """A job by its number, as `12_3` (index 3 of array 12), as `last`, or as `@name`."""
        return Job.of(self, self.get(f"/v1/jobs/{urllib.parse.quote(str(name))}"))

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
