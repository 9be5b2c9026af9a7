"""The trace against the script's own objects: tensors that the tracer missed, and what the trace calls its memory."""

from __future__ import annotations

import json
import threading
import unittest
from unittest import mock

import torch
from torch import nn

from carma.memory import cross_check
from tests.support import ScriptTest, allocations, live_bytes, traced

MIB = 1 << 20


def train(model: nn.Module, optimizer: torch.optim.Optimizer, width: int = 1024, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.empty(4, width).cuda()).sum().backward()
        optimizer.step()


class Missed(unittest.TestCase):
    """Parameters whose making is not seen."""

    def lost_in_thread(self) -> torch.Tensor:
        made = []
        thread = threading.Thread(target=lambda: made.append(torch.empty(1024, 1024, device="meta")))
        thread.start()
        thread.join()
        return made[0]

    def test_parameters_made_in_another_thread_count(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            model.weight = nn.Parameter(self.lost_in_thread())
            train(model, torch.optim.Adam(model.parameters()))

        session = traced(work, iterations=3)
        self.assertIsNone(session.refusal())
        self.assertEqual(2, allocations(session.trace.lines, "w").count(4 * MIB), "the one that was replaced, and the one that is used")

    def test_tensors_made_in_another_thread_are_told(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            optimizer.zero_grad()
            (model(torch.empty(4, 1024).cuda()).sum() + (model.weight * self.lost_in_thread()).sum()).backward()
            optimizer.step()

        session = traced(work)
        [note] = session.trace.facts["notes"]
        self.assertIn("4 MiB were made where the dry run sees nothing", note)

    def test_weights_that_no_operator_shows_are_refused(self) -> None:
        """A parameter that only an operator of another library uses: the tracer cannot adopt it, but its gradient is there."""

        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            hidden = nn.Parameter(self.lost_in_thread())
            hidden.grad = self.lost_in_thread()
            optimizer = torch.optim.SGD([*model.parameters(), hidden], lr=0.1)
            model(torch.empty(4, 1024).cuda()).sum().backward()
            optimizer.step()

        with mock.patch("carma.memory.storages.Storages.adopt"):
            session = traced(work)
        self.assertIn("take 16 MiB on GPU 0", session.refusal() or "")
        self.assertIn("8 MiB", session.refusal() or "")

    def test_a_trace_that_loses_an_allocation_is_refused(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            train(model, torch.optim.Adam(model.parameters()))

        self.assertIsNone(traced(work, iterations=3).refusal())
        real = cross_check.bytes_alive
        with mock.patch.object(cross_check, "bytes_alive", lambda lines, kinds: real(lines[2:], kinds)):
            self.assertIn("too low", traced(work, iterations=3).refusal() or "")


class Resized(unittest.TestCase):
    def test_resize_and_results_written_into_smaller_tensors(self) -> None:
        def work() -> None:
            tensor = torch.empty(0, device="cuda")
            tensor.resize_(1024, 1024)
            out = torch.empty(0, device="cuda")
            torch.add(tensor, 1, out=out)
            self.kept = tensor, out

        end, _ = live_bytes(traced(work).trace.lines)
        self.assertEqual(8 * MIB, end)
        del self.kept

    def test_replaced_storages(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            model.weight.data = torch.empty(2048, 1024, device="cuda")
            other = nn.Linear(2048, 1024, bias=False).cuda()
            with torch.no_grad():
                other.weight.set_(torch.empty(1024, 2048, device="cuda"))
            train(nn.Sequential(model, other), torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1))

        session = traced(work, iterations=3)
        self.assertIsNone(session.refusal())
        end, _ = live_bytes(session.trace.lines)
        self.assertGreaterEqual(end, 32 * MIB)


class Growth(unittest.TestCase):
    def test_what_each_step_keeps(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            kept = []
            while True:
                optimizer.zero_grad()
                output = model(torch.empty(1024, 1024).cuda())
                output.sum().backward()
                optimizer.step()
                if self.keeps:
                    kept.append(output)

        self.keeps = True
        [note] = traced(work, iterations=4).trace.facts["notes"]
        self.assertIn("grows by 4 MiB or more with each step", note)
        self.keeps = False
        self.assertNotIn("notes", traced(work, iterations=4).trace.facts)


class Kinds(unittest.TestCase):
    """Bytes by kind at every moment are those of the objects."""

    @staticmethod
    def most(lines: list[str], start: str, kinds: str) -> int:
        """The most bytes of these kinds between the first mark of that name and the next."""
        first = lines.index(start)
        end = next(i for i in range(first + 1, len(lines)) if lines[i].startswith("@"))
        return max(sum(cross_check.bytes_alive(lines[:i], kinds).values()) for i in range(first + 1, end + 1))

    def test_gradients_under_accumulation(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.empty(4, 1024).cuda()).sum().backward()
            optimizer.step()

        lines = traced(work).trace.lines
        self.assertEqual(4 * MIB, self.most(lines, "@ backward", "g"), "in the first of four backward passes")
        self.assertEqual([4 * MIB], allocations(lines, "g"))

    def test_state_of_the_first_step(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            train(model, torch.optim.Adam(model.parameters()), steps=1)

        lines = traced(work).trace.lines
        self.assertEqual(8 * MIB, self.most(lines, "@ optimizer", "o"), "both states, while the step runs")
        self.assertEqual(16 * MIB, self.most(lines, "@ optimizer", "wgo"))


class ByHand(unittest.TestCase):
    """Scripts that change their weights without an optimizer of PyTorch."""

    def train(self, update, every: int = 1) -> tuple[dict, list[str]]:
        self.updates = 0

        def work() -> None:
            model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
            momentum = {p: torch.zeros_like(p) for p in model.parameters()}
            for step in range(1, 200):
                model(torch.empty(8, 512, device="cuda")).pow(2).mean().backward()
                if step % every:
                    continue
                for p in model.parameters():
                    update(p, momentum[p])
                    p.grad = None
                self.updates += 1

        session = traced(work, iterations=3)
        self.assertIsNone(session.refusal())
        return session.trace.facts, session.trace.lines

    def test_plain_updates(self) -> None:
        def update(p: nn.Parameter, momentum: torch.Tensor) -> None:
            p.data -= 0.1 * momentum.mul_(0.9).add_(p.grad)

        facts, trace = self.train(update, every=5)
        self.assertEqual((3, 3), (facts["iterations"], self.updates), "the trace ends after the third update")
        self.assertEqual(15, trace.count("@ backward"))
        self.assertIn("counted by updates", facts["notes"][0])
        self.assertEqual(4 * 3, len(allocations(trace, "g")), "four gradients for each of three updates")
        _, peak = live_bytes(trace)
        self.assertGreaterEqual(peak, 3 * 2 * 512 * 513 * 4, "weights, momentum and gradients")

    def test_updates_without_a_graph(self) -> None:
        def update(p: nn.Parameter, momentum: torch.Tensor) -> None:
            with torch.no_grad():
                p -= 0.1 * p.grad

        facts, trace = self.train(update)
        self.assertEqual((3, 3), (facts["iterations"], trace.count("@ backward")))

    def test_replaced_data(self) -> None:
        def update(p: nn.Parameter, momentum: torch.Tensor) -> None:
            p.data = p.data - 0.1 * p.grad

        facts, trace = self.train(update)
        self.assertEqual((3, 3), (facts["iterations"], trace.count("@ backward")))

    def test_weights_that_are_computed_anew(self) -> None:
        def work() -> None:
            weight = torch.empty(512, 512, device="cuda", requires_grad=True)
            while True:
                [gradient] = torch.autograd.grad((torch.empty(8, 512, device="cuda") @ weight).sum(), [weight])
                weight = (weight - 0.1 * gradient).detach().requires_grad_()

        facts = traced(work, iterations=3).trace.facts
        self.assertIn("counted by backward passes", facts["notes"][0])
        self.assertEqual(64, facts["iterations"])

    def test_backward_passes_before_training(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            for _ in range(20):  # scores for pruning
                model(torch.empty(4, 1024).cuda()).sum().backward()
            train(model, torch.optim.Adam(model.parameters()))

        session = traced(work, iterations=3)
        self.assertEqual([4 * MIB] * 2, allocations(session.trace.lines, "o"))
        self.assertNotIn("notes", session.trace.facts)

    def test_a_step_that_is_long_overdue_is_made(self) -> None:
        def work() -> None:
            model = nn.Linear(1024, 1024, bias=False).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            while optimizer is not None:
                model(torch.empty(4, 1024).cuda()).sum().backward()

        with mock.patch("carma.memory.own_updates.LEAST_PASSES", 5), mock.patch("carma.memory.own_updates.LEAST_SECONDS", 0):
            session = traced(work, iterations=3)
        self.assertEqual([4 * MIB] * 2, allocations(session.trace.lines, "o"))
        [note] = session.trace.facts["notes"]
        self.assertIn("5 backward passes went by without a step of Adam", note)


SCRIPT = """
    import torch
    weight = torch.nn.Parameter(torch.randn(512, 512)).cuda().detach().requires_grad_()
    weight = torch.nn.Parameter(weight.detach())
    for step in range(200):
        (torch.randn(8, 512, device="cuda") @ weight).sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad.zero_()
"""


class Scripts(ScriptTest):
    def test_a_script_without_an_optimizer(self) -> None:
        result = self.run_script(SCRIPT)
        self.assertEqual(0, result.code, result.stderr)
        facts = json.loads(result.trace[1])
        self.assertEqual(3, facts["iterations"])
        self.assertIn("no optimizer of PyTorch", facts["notes"][0])


if __name__ == "__main__":
    unittest.main()
