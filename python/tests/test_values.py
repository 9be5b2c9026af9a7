"""What a script reads back from its tensors: known values as computed, unknown ones plausible."""

from __future__ import annotations

import unittest

import torch
from torch.nn import functional as F

from tests.support import traced


class Values(unittest.TestCase):
    def inside(self, work) -> None:
        """Runs assertions under a trace."""
        traced(work)

    def test_devices(self) -> None:
        def work() -> None:
            tensor = torch.ones(3).to("cuda:0")
            self.assertEqual(torch.device("cuda", 0), tensor.device)
            self.assertTrue(tensor.is_cuda)
            self.assertFalse(tensor.is_meta)
            self.assertEqual("torch.cuda.FloatTensor", tensor.type())
            self.assertEqual("cpu", tensor.cpu().device.type)
            self.assertEqual("cpu", torch.nn.Linear(2, 2).weight.device.type)
            self.assertTrue(torch.ones(2, device="meta").is_meta)
            self.assertIs(tensor, tensor.to("cuda"))
            self.assertEqual("cuda", torch.zeros_like(tensor).device.type)
            self.assertIn("cuda:0", repr(tensor))

        self.inside(work)
        self.assertFalse(torch.cuda.is_available(), "the pretended GPU is gone after the trace")

    def test_second_gpu(self) -> None:
        def work() -> None:
            self.assertEqual(2, torch.cuda.device_count())
            tensor = torch.empty(10, device="cuda:1") + 1
            self.assertEqual(1, tensor.device.index)

        session = traced(work, devices=2)
        self.assertTrue(all(line.endswith(" 1") for line in session.trace.lines if line.startswith("+")))

    def test_known_values_follow_computation(self) -> None:
        def work() -> None:
            lengths = torch.tensor([3, 5, 2]).cuda()
            self.assertEqual(5, lengths.max().item())
            self.assertEqual([4, 6, 3], (lengths + 1).tolist())
            lengths[0] = 9
            self.assertEqual(9, int(lengths.max()))
            mask = torch.arange(6, device="cuda")[None, :] < torch.tensor([[2], [6]], device="cuda")
            self.assertEqual(8, int(mask.sum()))
            self.assertEqual((8, 2), tuple(mask.nonzero().shape))
            self.assertEqual((2, 3), tuple(F.one_hot(torch.tensor([0, 2]).cuda()).shape))

        self.inside(work)

    def test_unknown_values_are_plausible(self) -> None:
        def work() -> None:
            loss = torch.randn(8, 8, device="cuda").mean()
            self.assertEqual(1.0, loss.item())
            self.assertEqual("1.00", f"{loss:.2f}")
            self.assertFalse(bool(torch.isnan(loss)))
            self.assertEqual(0, torch.randn(4, 10, device="cuda").argmax(1).tolist()[0])
            scores = torch.randn(100, device="cuda")
            self.assertEqual(50, len(scores[scores > 0]), "a condition holds for half")
            self.assertEqual((8, 8), torch.randn(8, 8, device="cuda").cpu().numpy().shape)

        self.inside(work)

    def test_parameters_cost_no_host_memory_and_keep_their_identity(self) -> None:
        def work() -> None:
            model = torch.nn.Linear(100_000, 100_000, bias=False)  # 40 GB
            weight = model.weight
            model.cuda()
            self.assertIs(weight, model.weight)
            self.assertTrue(weight.is_cuda)
            model.cpu()
            self.assertEqual("cpu", weight.device.type)

        self.assertIn("+ 1 40000000000 w", traced(work).trace.lines)


if __name__ == "__main__":
    unittest.main()
