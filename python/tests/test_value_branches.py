"""Branches on values of the GPU: checks that pass on a GPU, errors that are not raised, and branches that are told."""

from __future__ import annotations

import json
import math
import unittest

import torch
from torch import nn

from carma.memory import value_branches
from tests.support import ScriptTest, traced


class Checks(unittest.TestCase):
    """What a training in good order finds."""

    def inside(self, work) -> dict:
        return traced(work).trace.facts

    def test_nothing_is_infinite(self) -> None:
        def work() -> None:
            for shape in ((), (8,), (400, 400)):  # the last has more elements than values are kept for
                values = torch.randn(shape, device="cuda") * 2
                self.assertTrue(torch.isfinite(values).all())
                self.assertTrue(values.isfinite().all().item())
                self.assertFalse(torch.isnan(values).any())
                self.assertFalse(values.isinf().any())
                self.assertFalse((~torch.isfinite(values)).any())
                self.assertFalse(torch.logical_or(values.isnan().any(), values.isinf().any()))
                self.assertFalse((torch.isnan(values) | torch.isinf(values)).any())
                self.assertTrue((values == values).all())
                self.assertFalse((values != values).any())
                self.assertEqual(0, int(torch.isnan(values).sum()))

        self.assertNotIn("notes", self.inside(work))

    def test_infinite_values_that_are_known(self) -> None:
        def work() -> None:
            values = torch.tensor([1.0, math.inf, math.nan]).cuda()
            self.assertFalse(torch.isfinite(values).all())
            self.assertTrue(torch.isnan(values).any())
            self.assertFalse(torch.allclose(values, torch.ones(3, device="cuda")))

        self.assertNotIn("notes", self.inside(work))

    def test_two_precisions_give_one_result(self) -> None:
        """YOLOv5 tries mixed precision out before training, and trains without it where the results differ."""

        def work() -> None:
            model, data = nn.Linear(400, 400).cuda(), torch.randn(400, 400, device="cuda")
            with torch.no_grad():
                full = model(data)
                with torch.cuda.amp.autocast():
                    mixed = model(data).float()
            self.assertTrue(torch.allclose(full, mixed, atol=0.1))
            self.assertTrue(torch.isclose(full, mixed).all())

        self.inside(work)

    def test_single_numbers_compare_as_they_are_read(self) -> None:
        def work() -> None:
            loss = nn.Linear(4, 4).cuda()(torch.randn(2, 4, device="cuda")).mean()
            self.assertEqual(loss.item() < math.inf, bool(loss < math.inf))
            self.assertTrue(loss < torch.full((), math.inf, device="cuda"))
            self.assertFalse(loss > 5)
            self.assertFalse(loss != loss)

        self.inside(work)

    def test_a_check_is_forgotten_when_it_is_written_to(self) -> None:
        def work() -> None:
            checked = torch.isfinite(torch.randn(8, device="cuda"))
            checked[0] = False
            self.assertFalse(checked.all())
            checked = torch.isfinite(torch.randn(400, 400, device="cuda"))
            checked.logical_and_(torch.randn(400, 400, device="cuda") > 0)
            self.assertFalse(checked.all())

        self.inside(work)


class Selections(unittest.TestCase):
    def test_all_that_are_finite(self) -> None:
        def work() -> None:
            values = torch.randn(2000, 2000, device="cuda")
            self.assertEqual(4_000_000, len(values[torch.isfinite(values)]))
            self.assertEqual(0, len(values[values != values]))

        self.assertNotIn("notes", traced(work).trace.facts)

    def test_by_labels_that_the_script_made(self) -> None:
        def work() -> None:
            labels = torch.arange(64 * 2048).view(64, 2048).remainder(4).cuda()
            self.assertEqual(3 * 64 * 512, len(torch.empty(64, 2048, 8, device="cuda")[labels != 0]))

        self.assertNotIn("notes", traced(work).trace.facts)

    def test_by_values_that_are_not_known(self) -> None:
        def work() -> None:
            values = torch.randn(400, 400, device="cuda")
            self.assertEqual(80_000, len(values[values > 0]))

        [note] = traced(work).trace.facts["notes"]
        self.assertIn("test_value_branches.py:", note)
        self.assertIn("assumed half of 160,000 elements", note)


class OfPyTorch(unittest.TestCase):
    def test_branches_of_an_optimizer_are_not_told(self) -> None:
        def work() -> None:
            model = nn.Linear(8, 8).cuda()
            optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

            def closure() -> torch.Tensor:
                optimizer.zero_grad()
                loss = model(torch.empty(4, 8, device="cuda")).sum()
                loss.backward()
                return loss

            optimizer.step(closure)

        self.assertNotIn("notes", traced(work).trace.facts)


class Loops(unittest.TestCase):
    def test_a_loop_until_a_value_is_small_ends(self) -> None:
        def work() -> None:
            self.turns = 0
            values = torch.randn(8, device="cuda")
            while values.norm() > 1e-3:
                values = values / 2
                self.turns += 1

        traced(work)
        self.assertEqual(value_branches.LOOPS - 1, self.turns)


SCRIPT = """
    import sys, torch
    def check(values):
        assert (values >= -1).all(), "out of range"
        if not (values < 100).all():
            raise ValueError("out of range")
        if (values > 100).any():
            print("too large")
            sys.exit(1)
        if (values < 7).all():
            pass
        else:
            raise ValueError("out of range")
    model = torch.nn.Linear(4, 400).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = torch.tensor(float("inf"))
    while True:
        optimizer.zero_grad()
        output = model(torch.randn(300, 4, device="cuda"))
        check(output)
        loss = output.mean()
        if torch.isnan(loss):
            raise ValueError("diverged")
        if (output > 0).any():
            loss = loss + output.clamp(0).mean()
        if loss < best:
            best = loss.detach().cpu()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        optimizer.step()
"""


class Branches(ScriptTest):
    def test_errors_are_not_raised_and_branches_are_told(self) -> None:
        result = self.run_script(SCRIPT)
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual([
            "train.py:24 takes a branch on a GPU value that is not known; the dry run assumed false",
            "train.py:26 takes a branch on a GPU value that is not known; the dry run assumed true",
        ], json.loads(result.trace[1])["notes"])

    def test_no_more_than_five_are_told(self) -> None:
        def work() -> None:
            values = torch.randn(300, 300, device="cuda")
            found = 0
            found += 1 if (values > 0).any() else 0
            found += 1 if (values > 1).any() else 0
            found += 1 if (values > 2).any() else 0
            found += 1 if (values > 3).any() else 0
            found += 1 if (values > 4).any() else 0
            found += 1 if (values > 5).any() else 0

        self.assertEqual(5, len(traced(work).trace.facts["notes"]))


if __name__ == "__main__":
    unittest.main()
