"""What a user of the Python client does, against a manager that runs."""

import asyncio
import sys

from carma.client import Client, JobFailed, NoManager, Problem


async def ended(job):
    return await job


client = Client()
assert client.status()["speed"] == 60.0 and len(client.gpus()) == 2

job = client.submit(["sh", "-c", "echo out; echo err >&2"], gpus=0, name="first")
assert job.result(timeout=60) == "out\n" and job.logs("stderr") == "err\n", job.show()
assert job.state == "done" and client.job("@first").id == job.id == client.job("last").id

script = client.submit("#!/bin/sh\necho \"$1 in $PWD with $GREETING\"\n", gpus=0, directory="/", environment={"GREETING": "a b"}, after=[job])
assert script.result(timeout=60) == " in / with a b\n"

failed = client.submit(["sh", "-c", "exit 3"], gpus=0)
try:
    failed.result(timeout=60)
    raise AssertionError("it failed")
except JobFailed as error:
    assert error.result.exit_code == 3 and "exit code 3" in str(error)

held = client.submit(["true"], gpus=0, hold=True, memory=None)
assert "held" in held.why() and [row["id"] for row in client.queue()] == [held.id]
try:
    held.wait(timeout=0.2)
    raise AssertionError("it is held")
except TimeoutError:
    pass
held.release()
assert held.wait(timeout=60).succeeded
try:
    held.hold()
    raise AssertionError("it is over")
except Problem as problem:
    assert problem.kind == "conflict"

slow = client.submit(["sh", "-c", "echo a; sleep 0.2; echo b"], gpus=0)
assert b"".join(slow.follow()) == b"a\nb\n"
on_gpu = client.submit(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], memory="2GiB", cpus=1, time_limit=3600)
assert on_gpu.result(timeout=60).startswith("GPU-")
assert client.history(limit=1)[0]["id"] == on_gpu.id
changes = client.events()
more = client.submit(["true"], gpus=0)
assert any(name == "job" and change["job"] == more.id for name, change in changes)

sweep = client.sweep(["sh", "-c", "exit {code}"], {"code": [0, 4]}, gpus=0)
assert [result.exit_code for result in sweep.wait(timeout=60)] == [0, 4] and sweep[1].name == f"{sweep[0].id}_1"
assert client.job(sweep[1].name).id == sweep[1].id and sweep.states() == {"done": 2}
assert "exit code 4" in sweep._repr_html_()
again = sweep[1].resubmit()
assert asyncio.run(ended(again)).exit_code == 4 and again.id > sweep[1].id
steps = "import sys; sys.path[:0] = %r\nfrom carma.progress import Progress\nwith Progress(2) as progress: progress.advance()\nprint(open(progress._file).read())"
reports = client.submit([sys.executable, "-c", steps % (sys.path,)], gpus=0)
assert reports.result(timeout=60) == "0.5000\n\n", reports.logs("both")

try:
    client.submit(["true"], gpus=-1)
    raise AssertionError("less than none")
except Problem as problem:
    assert problem.kind == "invalid"
try:
    Client("/nonexistent/carma.sock").status()
    raise AssertionError("nobody is there")
except NoManager as error:
    assert "carma up" in str(error)
print("all is well")
