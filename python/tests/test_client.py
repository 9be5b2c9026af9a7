"""Jobs of the client: arrays, sweeps, awaited jobs, notebooks and progress, on answers as the manager gives them."""

from __future__ import annotations

import asyncio
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from carma.client import Client, Job, JobFailed, Jobs, Problem
from carma.progress import Progress


def detail(number: int, outcome: str | None = "succeeded", index: int | None = None, lines: tuple[str, ...] = ()) -> dict:
    """A job as the API describes it."""
    return {
        "id": number,
        "request": {"name": "<b>net"},
        "phase": "running" if outcome is None else "done",
        "outcome": outcome,
        "state": {"state": "done", "outcome": "succeeded" if outcome == "succeeded" else {"failed": {"code": 1}}},
        "array": None if index is None else {"array": 2, "index": index},
        "attempts": [{"exit": {"code": 0}, "peaks": [2048], "placement": {"devices": [{"device": "s0/gpu1"}]}}],
        **({"last_output": {"stream": "stderr", "lines": list(lines)}} if lines else {}),
    }


class Manager(Client):
    """A client whose manager is a table of jobs."""

    def __init__(self, jobs: dict[int, dict]) -> None:
        super().__init__("/nonexistent")
        self.jobs, self.submitted, self.posted = jobs, [], []

    def _submit(self, submission):
        self.submitted.append(submission)
        return {"jobs": sorted(self.jobs)}

    def get(self, path, **query):
        if path == "/v1/history":
            return [job for number, job in self.jobs.items() if query.get("before") is None]
        job = self.jobs[int(path.split("/")[3])]
        if path.endswith("/wait") and job["phase"] == "running":
            # It ends while it is waited for.
            job.update(detail(job["id"], "succeeded", (job["array"] or {}).get("index")))
            return {**job, "phase": "running"}
        return job

    def post(self, path, body=None, headers=None):
        self.posted.append(path)
        if "/3/" in path:
            raise Problem("conflict", "it is over")
        return {"jobs": [9]} if path.endswith("resubmit") else {}


class Arrays(unittest.TestCase):
    def setUp(self) -> None:
        failed = detail(3, "failed with exit code 1", 1, ("Traceback", "ValueError: <no>"))
        self.manager = Manager({2: detail(2, index=0), 3: failed, 4: detail(4, None, 2)})

    def test_sweeps_and_arrays_are_sent_as_one_submission(self) -> None:
        jobs = self.manager.sweep(["train", "{lr}", "{net}"], {"lr": [0.1, 0.01], "net": ("a",)}, at_most=2, gpus=0)
        sent = self.manager.submitted[-1]
        self.assertEqual(sent["parameters"], [{"name": "lr", "values": ["0.1", "0.01"]}, {"name": "net", "values": ["a"]}])
        self.assertEqual((sent["job"]["schedule"]["at_most"], sent["job"]["resources"]["gpus"]), (2, 0))
        self.assertEqual([job.name for job in jobs], ["2_0", "2_1", "2_2"])
        jobs = self.manager.submit_array(["train"], range(5, 8))
        self.assertEqual(self.manager.submitted[-1]["array"], [5, 6, 7])
        self.assertEqual(repr(jobs), "<3 jobs, 2_5 to 2_7>")
        self.assertIsInstance(self.manager.submit(["train"]), Job)
        self.assertNotIn("at_most", {key for key, value in self.manager.submitted[-1]["job"]["schedule"].items() if value is not None})

    def test_mistakes_are_refused_as_by_the_command_line(self) -> None:
        with self.assertRaisesRegex(ValueError, "lr is not used: write {lr} in the command"):
            self.manager.sweep(["echo", "x"], {"lr": [0.1]})
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "train.py").write_text("import os; os.environ['CARMA_PARAM_LR']")
            self.manager.sweep(["python", "train.py"], {"lr": [0.1]}, directory=folder)
        self.manager.sweep("#!/bin/sh\ntrue\n", {"lr": [0.1]})
        for option in ("memory", "host_memory"):
            with self.assertRaisesRegex(ValueError, f"{option}: '12' has no unit: write 12GiB or 12MiB"):
                self.manager.submit(["train"], **{option: "12"})
        self.manager.submit(["train"], memory="12288")
        with self.assertRaisesRegex(ValueError, r"for a program give a list of words: \['echo', 'hi'\]"):
            self.manager.submit("echo hi")

    def test_results_know_why(self) -> None:
        jobs = self.manager.submit_array(["train"], range(3))
        self.assertEqual([result.succeeded for result in jobs.wait()], [True, False, True])
        with self.assertRaisesRegex(JobFailed, "job 2_1 failed with exit code 1\n  Traceback\n  ValueError"):
            jobs[1].result()
        self.assertEqual(jobs.states(), {"done": 3})
        jobs.cancel()
        self.assertEqual(len(self.manager.posted), 3, "one that is over does not end it")
        self.assertEqual(jobs[0].resubmit().id, 9)

    def test_jobs_are_awaited(self) -> None:
        jobs = self.manager.submit_array(["train"], range(3))

        async def main():
            one = await jobs[2]
            every = await jobs
            return one, every, [result.name async for result in jobs.as_completed()]

        one, every, ended = asyncio.run(main())
        self.assertEqual((one.name, [result.name for result in every], sorted(ended)), ("2_2", ["2_0", "2_1", "2_2"], ["2_0", "2_1", "2_2"]))

    def test_notebooks_show_state_and_error(self) -> None:
        jobs = self.manager.submit_array(["train"], range(3))
        shown = jobs._repr_html_()
        self.assertIn("<p>2 done, 1 running</p>", shown)
        self.assertIn("<td>2_0</td><td>&lt;b&gt;net</td><td>succeeded</td><td>s0/gpu1</td><td>2.0 GiB</td>", shown)
        self.assertIn("<pre>Traceback\nValueError: &lt;no&gt;</pre>", shown)
        self.assertIn("<td>2_0</td>", jobs[0]._repr_html_())
        self.assertEqual(Jobs(self.manager, []).states(), {})


class Reports(unittest.TestCase):
    def test_progress_is_written_where_the_manager_reads_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "progress"
            with mock.patch.dict(os.environ, {"CARMA_PROGRESS": str(file)}):
                with Progress(4) as progress:
                    self.assertEqual(file.read_text(), "0.0000\n")
                    progress.advance(3)
                self.assertEqual(file.read_text(), "0.7500\n")
                self.assertEqual(list(Progress.over("abc")), ["a", "b", "c"])
                self.assertEqual(file.read_text(), "1.0000\n")
                with self.assertRaises(KeyError), Progress(2, done=1):
                    raise KeyError
                self.assertEqual(file.read_text(), "0.5000\n")

    def test_without_a_manager_nothing_is_written(self) -> None:
        with mock.patch.dict(os.environ), Progress(2) as progress:
            os.environ.pop("CARMA_PROGRESS", None)
            progress.advance(5)
        self.assertEqual(progress.share, 1.0)
        with self.assertRaisesRegex(ValueError, "give how many steps"):
            Progress(0)


if __name__ == "__main__":
    unittest.main()
