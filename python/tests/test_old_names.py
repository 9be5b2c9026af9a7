"""Old and rare ways of naming tensors and checking values."""

from __future__ import annotations

import unittest

import torch

from tests.support import allocations, traced


class OldNames(unittest.TestCase):
    def test_types_of_the_gpu(self) -> None:
        def work() -> None:
            kind = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
            tensor = kind(16, 8).fill_(1.0)
            self.assertEqual(((16, 8), "cuda", torch.float32), (tuple(tensor.shape), tensor.device.type, tensor.dtype))
            self.assertEqual([1.0, 2.0], kind([1, 2]).tolist())
            self.assertEqual([0, 1, 2], torch.cuda.LongTensor(torch.arange(3).numpy()).tolist())
            self.assertIsInstance(torch.ones(2).type(kind), kind)
            self.assertIsInstance(torch.ones(2).type("torch.cuda.HalfTensor"), torch.cuda.HalfTensor)
            self.assertNotIsInstance(torch.ones(2), kind)
            self.assertNotIsInstance(tensor, torch.cuda.DoubleTensor)

        session = traced(work)
        self.assertEqual(16 * 8 * 4, allocations(session.trace.lines)[0])

    def test_checks_of_values_that_are_not_known(self) -> None:
        def work() -> None:
            logits = torch.nn.Linear(4, 3).cuda()(torch.randn(5, 4, device="cuda"))
            distribution = torch.distributions.Categorical(logits=logits)
            action = distribution.sample()
            self.assertEqual((5,), tuple(distribution.log_prob(action).shape))
            torch.distributions.Normal(logits, logits.exp()).rsample().sum().backward()
            self.assertTrue(torch.allclose(logits, logits * 1.0))
            self.assertFalse(torch.allclose(torch.zeros(2).cuda(), torch.ones(2).cuda()))

        traced(work)
        self.assertTrue(torch.distributions.Distribution._validate_args, "as it was before")


class Sparse(unittest.TestCase):
    def test_products_with_sparse_matrices(self) -> None:
        def work() -> None:
            where = torch.tensor([[0, 1, 2], [2, 0, 1]])
            adjacency = torch.sparse_coo_tensor(where, torch.ones(3), (3, 3)).cuda()
            model = torch.nn.Linear(8, 5).cuda()
            output = torch.spmm(adjacency, model(torch.randn(3, 8).cuda()))
            self.assertEqual((3, 5), tuple(output.shape))
            output.sum().backward()
            self.assertEqual((5, 8), tuple(model.weight.grad.shape))

        traced(work)


if __name__ == "__main__":
    unittest.main()
