"""The examples, as jobs on emulated GPUs."""

from __future__ import annotations

import sys

from carma.client import Client, Job
from tests.emulated import ROOT, EmulatedTest
from tests.support import installed


class Examples(EmulatedTest):
    # The grace for a checkpoint is emulated time, and a process with PyTorch may take seconds to end.
    SPEED = 1

    @installed("transformers", "accelerate")
    def test_hugging_face_trainer(self) -> None:
        self.is_interrupted_and_continues("hugging_face_trainer.py")

    @installed("lightning")
    def test_lightning(self) -> None:
        self.is_interrupted_and_continues("lightning_trainer.py")

    def is_interrupted_and_continues(self, example: str) -> None:
        program = str(ROOT / "examples" / example)
        # PyTorch would look for a CUDA driver on the emulated GPUs.
        command = ["env", "CUDA_VISIBLE_DEVICES=", sys.executable, program, "--steps", "2000"]
        self.carma("submit", "--checkpoint", "--mem", "2GiB", "--", *command)
        client = Client()
        job = client.job("last")
        self.assertTrue(0 < self.progress(client, job) < 1)
        job.requeue()
        self.assertTrue(job.wait(timeout=240).succeeded, job.logs("stderr"))
        self.assertIn("begins at the start", job.logs(attempt=1))
        second = job.logs(attempt=2)
        self.assertRegex(second, r"begins at \S+/checkpoint/\S+")
        self.assertIn("done after 2000 steps", second)
        self.assertEqual([{"code": 143}, {"code": 0}], [attempt["exit"] for attempt in job.show()["attempts"]])

    def progress(self, client: Client, job: Job) -> float:
        """The progress of a running job, as soon as the manager shows one."""
        for _ in client.events():
            rows = [row for row in client.queue() if row["id"] == job.id]
            if not rows:
                self.fail(job.logs("stderr"))
            if rows[0].get("progress"):
                return rows[0]["progress"]
        raise AssertionError("the manager is gone")
