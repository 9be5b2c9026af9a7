"""Recurrent layers: what cuDNN keeps, by the published readings, and the note that it is not documented."""

from __future__ import annotations

import unittest

import torch
from torch import nn

from carma.memory.recurrent import NOTE, reserve_bytes
from tests.support import allocations, live_bytes, traced


class TestRecurrentLayers(unittest.TestCase):
    def test_the_reserve_is_that_of_the_published_readings(self) -> None:
        """pytorch/pytorch, issue 2895: four layers of 320 units."""
        self.assertEqual(736_000_000, reserve_bytes("lstm", 25_000, 320, 4, 1, 4, False))
        self.assertEqual(864_000_000, reserve_bytes("gru", 25_000, 320, 4, 1, 4, False))

    def test_a_training_step_has_a_reserve_and_a_note(self) -> None:
        def train() -> None:
            layer = nn.LSTM(16, 32, num_layers=2).cuda()
            output, _ = layer(torch.randn(10, 4, 16).cuda())
            output.sum().backward()

        session = traced(train)
        self.assertIn(reserve_bytes("lstm", 40, 32, 2, 1, 4, False), allocations(session.trace.lines))
        self.assertIn(NOTE, session.trace.facts["notes"])

    def test_evaluation_has_no_reserve(self) -> None:
        def evaluate() -> None:
            layer = nn.GRU(16, 32).cuda().eval()
            with torch.no_grad():
                layer(torch.randn(1000, 8, 16).cuda())

        _, peak = live_bytes(traced(evaluate).trace.lines)
        self.assertLess(peak, reserve_bytes("gru", 8000, 32, 1, 1, 4, False))

    def test_steps_come_first_in_a_copy_where_the_batch_does(self) -> None:
        def forward(batch_first: bool):
            def run() -> None:
                layer = nn.GRU(16, 32, batch_first=batch_first).cuda()
                layer(torch.randn(10, 4, 16).cuda())

            return allocations(traced(run).trace.lines).count(10 * 4 * 16 * 4)

        self.assertEqual(forward(False) + 1, forward(True))


if __name__ == "__main__":
    unittest.main()
