"""What a user of the Python client does, against a manager that runs."""

from carma.client import Client, JobFailed, NoManager, Problem

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
