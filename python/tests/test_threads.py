"""Threads of a script, and ways of asking that belong to one thread: inference mode."""

from __future__ import annotations

import json
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import torch

from tests.support import ScriptTest, allocations, traced


class Threads(unittest.TestCase):
    def test_threads_see_the_gpu(self) -> None:
        found = []

        def load() -> None:
            tensor = torch.ones(1000).cuda()
            found.append((tensor.device.type, (tensor + 1)[:2].tolist()))

        def work() -> None:
            thread = threading.Thread(target=load)
            thread.start()
            thread.join()
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda _: load(), range(3)))

        session = traced(work)
        self.assertEqual([("cuda", [2.0, 2.0])] * 4, found)
        self.assertEqual([4000] * 8, allocations(session.trace.lines))

    def test_a_thread_moves_nothing_of_another(self) -> None:
        def work() -> None:
            model = torch.nn.Linear(10, 10)
            stop = threading.Event()

            def prefetch() -> None:
                while not stop.is_set():
                    torch.ones(3).cuda()
                    assert torch.ones(3).device.type == "cpu"

            thread = threading.Thread(target=prefetch)
            thread.start()
            for _ in range(200):
                assert torch.zeros(7).device.type == "cpu"
                torch.zeros(7, device="cuda")
            model.cuda()
            stop.set()
            thread.join()
            self.assertEqual({"cuda"}, {parameter.device.type for parameter in model.parameters()})

        session = traced(work)
        self.assertIsNone(session.thread_error)
        self.assertEqual(200, allocations(session.trace.lines).count(28))

    def test_memory_shared_between_processes(self) -> None:
        def work() -> None:
            model = torch.nn.Linear(4, 4).cuda().share_memory()
            self.assertTrue(model.weight.is_cuda)
            self.assertEqual([1.0], torch.ones(1).share_memory_().tolist())

        traced(work)

    def test_values_in_inference_mode(self) -> None:
        def work() -> None:
            model = torch.nn.Linear(4, 4).cuda()
            with torch.inference_mode():
                output = model(torch.randn(2, 4, device="cuda"))
                self.assertEqual(1.0, output.mean().item())
                self.assertEqual(3.0, torch.tensor(3.0).cuda().item())
                self.assertEqual([1, 2], torch.tensor([1, 2]).cuda().cpu().tolist())
                self.assertEqual(2, int((torch.arange(4).cuda() > 1).sum()))

        traced(work)


class Scripts(ScriptTest):
    def test_training_in_a_thread(self) -> None:
        result = self.run_script("""
            import threading, torch
            def train():
                model = torch.nn.Linear(4, 4).cuda()
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                while True:
                    model(torch.randn(2, 4).cuda()).sum().backward()
                    optimizer.step()
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()
        """)
        self.assertEqual(0, result.code, result.stderr)
        facts = json.loads(result.trace[1])
        self.assertEqual((3, None), (facts["iterations"], facts.get("time_limit")))

    def test_an_error_in_a_thread_is_the_reason(self) -> None:
        result = self.run_script("""
            import threading
            def train():
                raise ValueError("no data in the thread")
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()
        """)
        self.assertEqual(3, result.code)
        self.assertIn("no data in the thread", json.loads(result.stderr.splitlines()[-1])["error"])


if __name__ == "__main__":
    unittest.main()
