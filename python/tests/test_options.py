"""The client's options against the API document: an option that the manager learns must reach the client."""

from __future__ import annotations

import datetime
import inspect
import json
import unittest
from pathlib import Path

from carma.request import job_request

DOCUMENT = Path(__file__).resolve().parents[2] / "web/openapi.json"

#: Every option of the client, with a value that is sent.
GIVEN = {
    "name": "net",
    "gpus": 2,
    "memory": "12GiB",
    "cpus": 4,
    "host_memory": "8GiB",
    "time_limit": "2h",
    "directory": "/tmp",
    "environment": {"A": "1"},
    "conda": "torch",
    "image": "pytorch:2.4",
    "engine": "podman",
    "snapshot": True,
    "exclusive": True,
    "mode": "mps",
    "priority": 3,
    "hold": True,
    "begin": datetime.datetime(2027, 1, 31, tzinfo=datetime.timezone.utc),
    "after": [12],
    "after_any": ["13_2"],
    "wait_for_hardware": True,
    "retries": 2,
    "memory_retries": 1,
    "checkpoint": True,
    "on_hang": "restart",
    "model": "net.toml",
    "batch": 32,
    "dry_run": True,
    "output": "out.txt",
    "error": "err.txt",
    "at_most": 3,
}

#: Another way to give what is in GIVEN.
OTHER_WAYS = {"venv"}

#: Keys that a client in Python has no use for, and why.
LEFT_OUT = {
    "array": "the manager sets it",
    "interactive": "it needs a terminal",
    "resources.idle_limit": "it is about interactive jobs",
}


class Schema:
    def __init__(self) -> None:
        self.schemas = json.loads(DOCUMENT.read_text())["components"]["schemas"]

    def resolved(self, schema: dict) -> dict:
        """A schema without references; one that may be null as if it may not."""
        while True:
            options = [option for option in schema.get("oneOf", []) if option.get("type") != "null"]
            if "$ref" in schema:
                schema = self.schemas[schema["$ref"].rpartition("/")[2]]
            elif len(options) == 1:
                schema = options[0]
            else:
                return schema

    def leaves(self, schema: dict, path: str = ""):
        """The keys with values of their own: `resources.memory`."""
        schema = self.resolved(schema)
        if "properties" not in schema:
            yield path, schema
            return
        for key, inner in schema["properties"].items():
            inside = f"{path}.{key}" if path else key
            if inside in LEFT_OUT:
                continue
            yield from self.leaves(inner, inside)


def at(request: dict, path: str):
    for key in path.split("."):
        request = (request or {}).get(key)
    return request


def paths(request: dict, leaves: set[str], before: str = ""):
    for key, value in request.items():
        path = f"{before}{key}"
        if isinstance(value, dict) and path not in leaves:
            yield from paths(value, leaves, f"{path}.")
        else:
            yield path


class Options(unittest.TestCase):
    def setUp(self) -> None:
        if not DOCUMENT.exists():
            self.skipTest("the API document is not installed with the package")
        self.schema = Schema()
        self.leaves = dict(self.schema.leaves({"$ref": "#/components/schemas/JobRequest"}))
        self.request = job_request(["python", "train.py"], **GIVEN)

    def test_the_table_of_this_test_has_every_option(self) -> None:
        options = set(inspect.signature(job_request).parameters) - {"command"}
        self.assertEqual(options, set(GIVEN) | OTHER_WAYS)

    def test_every_key_of_the_api_is_set_by_an_option(self) -> None:
        missing = [path for path in self.leaves if at(self.request, path) in (None, [], {})]
        self.assertEqual(missing, [], "give the client an option for these, or a reason in LEFT_OUT")
        self.assertGreater(len(self.leaves), 25)

    def test_the_client_sends_nothing_that_the_api_does_not_have(self) -> None:
        self.assertEqual(set(paths(self.request, set(self.leaves))) - set(self.leaves), set())

    def test_words_of_the_client_are_words_of_the_api(self) -> None:
        for path in ("on_hang", "resources.mode", "image.engine"):
            self.assertIn(at(self.request, path), self.leaves[path]["enum"])
        bare = job_request(["true"])
        self.assertIn(bare["on_hang"], self.leaves["on_hang"]["enum"])
        conditions = self.schema.schemas["Condition"]["enum"]
        self.assertEqual([after["condition"] for after in self.request["schedule"]["after"]], conditions)

    def test_options_that_contradict_each_other_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "conda and venv"):
            job_request(["true"], conda="a", venv="b")
        with self.assertRaisesRegex(ValueError, "give the image"):
            job_request(["true"], engine="podman")
        self.assertEqual(job_request(["true"], venv="/opt/v")["activation"], {"venv": "/opt/v"})


if __name__ == "__main__":
    unittest.main()
