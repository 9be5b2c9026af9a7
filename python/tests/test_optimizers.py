"""Several optimizers: those that step late are waited for, those that never step are named."""

from __future__ import annotations

import json
import time
import unittest
from unittest import mock

import torch
from torch import nn

from tests.support import ScriptTest, allocations, traced

GAN = """
    import sys, torch
    from torch import nn
    steps_of_critic = int(sys.argv[1])
    generator, critic = nn.Linear(16, 300).cuda(), nn.Linear(300, 1).cuda()
    of_generator, of_critic = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
    step = 0
    while True:
        noise = torch.randn(8, 16, device="cuda")
        of_critic.zero_grad()
        (critic(generator(noise).detach()).mean() - critic(torch.randn(8, 300, device="cuda")).mean()).backward()
        of_critic.step()
        step += 1
        if step % steps_of_critic == 0:
            of_generator.zero_grad()
            (-critic(generator(noise)).mean()).backward()
            of_generator.step()
"""
WEIGHT_OF_GENERATOR = 16 * 300 * 4


def states(trace: list[str]) -> list[int]:
    """Sizes of what turned out to be the state of an optimizer."""
    return allocations(trace, "o")


class Late(ScriptTest):
    def run_gan(self, steps_of_critic: int) -> tuple[dict, list[str]]:
        result = self.run_script(GAN, str(steps_of_critic))
        self.assertEqual(0, result.code, result.stderr)
        return json.loads(result.trace[1]), result.trace[2:]

    def test_a_generator_that_steps_every_fifth_time(self) -> None:
        for steps in (5, 40):
            facts, trace = self.run_gan(steps)
            self.assertEqual(2, states(trace).count(WEIGHT_OF_GENERATOR), "both of Adam's states")
            self.assertEqual(3, facts["iterations"], "an iteration ends with a step of each")
            self.assertEqual(3 * steps + 3, trace.count("@ optimizer"))
            self.assertNotIn("notes", facts)

    def test_a_generator_that_steps_too_late(self) -> None:
        facts, trace = self.run_gan(100_000)
        self.assertEqual(0, states(trace).count(WEIGHT_OF_GENERATOR))
        [note] = facts["notes"]
        self.assertIn("Adam", note)
        self.assertIn("1 of 2", note)
        self.assertIn("--iterations", note)
        self.assertLess(trace.count("@ optimizer"), 200)

    def test_plain_training_has_no_notes(self) -> None:
        result = self.run_script("""
            import torch
            model = torch.nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            optimizer = torch.optim.Adam(model.parameters())  # the one before is gone
            while True:
                optimizer.zero_grad()
                model(torch.randn(2, 4).cuda()).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(0, result.code, result.stderr)
        facts = json.loads(result.trace[1])
        self.assertEqual(3, facts["iterations"])
        self.assertNotIn("notes", facts)
        self.assertEqual(3, result.trace.count("@ optimizer"))

    def test_a_script_that_ends_before_the_second_optimizer_steps(self) -> None:
        result = self.run_script("""
            import torch
            def main():
                one, other = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 4).cuda()
                first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.Adam(other.parameters())
                for _ in range(5):
                    one(torch.randn(2, 4).cuda()).sum().backward()
                    first.step()
            main()
        """)
        self.assertEqual(0, result.code, result.stderr)
        [note] = json.loads(result.trace[1])["notes"]
        self.assertIn("Adam", note)

    def test_a_time_limit_while_waiting(self) -> None:
        slow = GAN.replace("step += 1", "step += 1; __import__('time').sleep(1.5 if step > 2 else 0)")
        began = time.monotonic()
        result = self.run_script(slow, "100000", options=["--time-limit", "8"])
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(1, len(json.loads(result.trace[1])["notes"]))


class Counting(unittest.TestCase):
    @staticmethod
    def loop(model: nn.Module, step) -> None:
        for _ in range(300):
            model.zero_grad()
            model(torch.empty(2, 8).cuda()).sum().backward()
            step()

    def steps(self, work) -> int:
        return traced(work, iterations=3).trace.lines.count("@ optimizer")

    def test_an_unused_optimizer_in_host_memory_is_not_waited_for(self) -> None:
        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            dummy = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
            self.loop(model, optimizer.step)
            del dummy

        self.assertEqual(3, self.steps(work))

    def test_the_wait_is_bounded_in_time(self) -> None:
        def work() -> None:
            model, other = nn.Linear(8, 8).cuda(), nn.Linear(8, 8).cuda()
            optimizer, unused = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
            self.loop(model, optimizer.step)
            del unused

        with mock.patch("carma.memory.optimizer_steps.FURTHER_SECONDS", 0.0):
            session = traced(work, iterations=3)
        self.assertEqual(3, session.trace.lines.count("@ optimizer"))
        self.assertEqual(1, len(session.trace.facts["notes"]))

    def test_a_dropped_optimizer_is_not_waited_for(self) -> None:
        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            optimizers = [torch.optim.Adam(model.parameters()), torch.optim.SGD(model.parameters(), lr=0.1)]
            del optimizers[0]
            self.loop(model, optimizers[0].step)

        self.assertEqual(3, self.steps(work))

    def test_an_optimizer_inside_another_steps_with_it(self) -> None:
        class Outer(torch.optim.Optimizer):
            def __init__(self, parameters) -> None:
                super().__init__(parameters, {})
                self.inner = torch.optim.SGD(self.param_groups, lr=0.1)

            def step(self, closure=None):
                return self.inner.step()

        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            self.loop(model, Outer(list(model.parameters())).step)

        session = traced(work, iterations=3)
        self.assertEqual(3, session.phases.completed)
        self.assertNotIn("notes", session.trace.facts)

    def test_an_optimizer_in_two_halves(self) -> None:
        """Sharpness-aware minimisation: the outer optimizer keeps a copy of the weights and never steps by itself."""

        class TwoHalves(torch.optim.Optimizer):
            def __init__(self, parameters) -> None:
                super().__init__(parameters, {})
                self.base = torch.optim.SGD(self.param_groups, lr=0.1)

            def both(self) -> None:
                for group in self.param_groups:
                    for parameter in group["params"]:
                        self.state[parameter]["old"] = parameter.data.clone()
                self.base.step()

        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            self.loop(model, TwoHalves(list(model.parameters())).both)

        session = traced(work, iterations=3)
        self.assertEqual(3, session.trace.lines.count("@ optimizer"))
        self.assertNotIn("notes", session.trace.facts)

    def test_a_class_that_calls_its_parents_step(self) -> None:
        class Mine(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            plain = torch.optim.SGD(model.parameters(), lr=0.1)
            mine = Mine(model.parameters(), lr=0.1)
            self.loop(model, lambda: (plain.step(), mine.step()))

        session = traced(work, iterations=3)
        self.assertEqual(3, session.phases.completed)
        self.assertEqual(6, session.trace.lines.count("@ optimizer"))

    def test_delayed_policy_updates(self) -> None:
        def work() -> None:
            actor, critic = nn.Linear(8, 100).cuda(), nn.Linear(100, 1).cuda()
            of_actor, of_critic = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
            for step in range(1, 300):
                state = torch.empty(4, 8).cuda()
                of_critic.zero_grad()
                critic(actor(state).detach()).mean().backward()
                of_critic.step()
                if step % 4 == 0:
                    of_actor.zero_grad()
                    (-critic(actor(state)).mean()).backward()
                    of_actor.step()

        lines = traced(work, iterations=3).trace.lines
        self.assertEqual(2, states(lines).count(8 * 100 * 4))
        self.assertEqual(15, lines.count("@ optimizer"))
        self.assertGreater(len(allocations(lines)), 0)


if __name__ == "__main__":
    unittest.main()
