"""What single operators allocate, keep and announce: CUDA's behaviour, byte by byte."""

from __future__ import annotations

import unittest

import torch
from torch import nn
from torch.nn import functional as F

from tests.support import allocations, between, live_bytes, torch2, traced


def step(model: nn.Module, *shape: int, loss=lambda output: output.sum()):
    """One forward and backward pass with an optimizer that allocates nothing."""

    def work() -> None:
        network = model().cuda()
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        loss(network(torch.empty(*shape).cuda())).backward()
        optimizer.step()

    return traced(work).trace.lines


class Operators(unittest.TestCase):
    def forward(self, model, *shape: int) -> list[str]:
        return between(step(model, *shape), "@ forward", "@ backward")

    def backward(self, model, *shape: int) -> list[str]:
        return between(step(model, *shape), "@ backward", "@ optimizer")

    def test_linear_announces_its_matrix_product_after_the_result(self) -> None:
        lines = self.forward(lambda: nn.Linear(10, 20), 4, 10)
        self.assertEqual(["+", "320", "a"], [lines[0].split()[i] for i in (0, 2, 3)])
        self.assertEqual("m", lines[1])

    def test_convolution_is_announced_in_all_directions(self) -> None:
        def model() -> nn.Module:
            return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 5, stride=2, padding=2, groups=2))

        forward = [line for line in self.forward(model, 2, 3, 8, 8) if line.startswith("c")]
        self.assertEqual(["c forward 2 3 8 8 8 8 8 3 3 1 1 1 float32", "c forward 2 8 8 8 16 4 4 5 5 2 2 2 float32"], forward)
        backward = [line for line in self.backward(model, 2, 3, 8, 8) if line[0] in "+c"]
        second = backward.index("c data 2 8 8 8 16 4 4 5 5 2 2 2 float32")
        self.assertEqual(2 * 8 * 8 * 8 * 4, int(backward[second - 1].split()[2]))
        self.assertEqual(16 * 4 * 25 * 4, int(backward[second + 1].split()[2]))
        self.assertEqual("c weight 2 8 8 8 16 4 4 5 5 2 2 2 float32", backward[second + 2])
        self.assertEqual(16 * 4, int(backward[second + 3].split()[2]), "the gradient of the bias comes last")
        self.assertNotIn("c data 2 3 8 8 8 8 8 3 3 1 1 1 float32", backward, "the input needs no gradient")

    def test_convolution_in_one_dimension_and_transposed(self) -> None:
        flat = [line for line in self.forward(lambda: nn.Conv1d(3, 8, 5), 2, 3, 20) if line.startswith("c")]
        self.assertEqual(["c forward 2 3 1 20 8 1 16 1 5 1 1 1 float32"], flat)
        up = [line for line in self.forward(lambda: nn.ConvTranspose2d(3, 8, 2, stride=2), 2, 3, 4, 4) if line.startswith("c")]
        self.assertEqual(["c forward 2 3 4 4 8 8 8 2 2 2 2 1 float32 t"], up)

    def test_batch_norm_keeps_mean_and_deviation(self) -> None:
        lines = self.forward(lambda: nn.BatchNorm2d(8), 2, 8, 4, 4)
        self.assertEqual([1024, 32, 32], allocations(lines)[:3])

    def test_layer_norm_keeps_mean_and_deviation_of_each_row(self) -> None:
        self.assertEqual([4 * 10 * 4, 16, 16], allocations(self.forward(lambda: nn.LayerNorm(10), 4, 10))[:3])

    def test_dropout_keeps_a_mask_of_bytes(self) -> None:
        self.assertEqual([4000, 1000], allocations(self.forward(lambda: nn.Sequential(nn.Dropout(0.5), nn.PReLU()), 10, 100))[:2])

    def test_in_place_and_views_allocate_nothing(self) -> None:
        lines = self.forward(lambda: nn.Sequential(nn.Linear(10, 10), nn.ReLU(inplace=True), nn.Flatten(), nn.Identity()), 4, 10)
        self.assertEqual([160, 4], allocations(lines), "one result and the sum")

    def test_pooling_keeps_indices(self) -> None:
        lines = self.forward(lambda: nn.Sequential(nn.Conv2d(1, 1, 1), nn.MaxPool2d(2)), 1, 1, 8, 8)
        self.assertEqual([256, 64, 128], allocations(lines)[:3])

    def test_cross_entropy_keeps_the_log_softmax(self) -> None:
        def work() -> None:
            model = nn.Linear(8, 100).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            F.cross_entropy(model(torch.empty(4, 8).cuda()), torch.zeros(4, dtype=torch.int64).cuda()).backward()
            optimizer.step()

        forward = between(traced(work).trace.lines, "@ forward", "@ backward")
        self.assertEqual([1600, 1600, 4, 4], allocations(forward, "a"))

    def test_embedding_has_a_gradient_of_the_whole_table(self) -> None:
        def work() -> None:
            model = nn.Embedding(1000, 16).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            model(torch.zeros(4, dtype=torch.int64).cuda()).sum().backward()
            optimizer.step()

        self.assertIn(1000 * 16 * 4, allocations(between(traced(work).trace.lines, "@ backward", "@ optimizer")))

    def test_kinds(self) -> None:
        def work() -> None:
            model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            model(torch.empty(4, 8).cuda()).sum().backward()
            optimizer.step()

        lines = traced(work).trace.lines
        self.assertEqual([256, 32, 32, 32], allocations(lines, "w"))
        self.assertEqual([32, 32, 8], allocations(lines, "b"))
        self.assertEqual([128], allocations(lines, "i"))
        self.assertEqual(4, len(allocations(lines, "g")))
        self.assertEqual(4, len(allocations(lines, "o")))

    def test_iterations_are_marked_and_nothing_leaks(self) -> None:
        def work() -> None:
            model = nn.Linear(100, 100).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                optimizer.zero_grad()
                model(torch.empty(10, 100).cuda()).sum().backward()
                optimizer.step()

        lines = traced(work, iterations=3).trace.lines
        marks = [line for line in lines if line.startswith("@")]
        one = ["@ forward", "@ backward", "@ optimizer"]
        self.assertEqual(["@ iteration 1", *one, "@ iteration 2", *one, "@ iteration 3", *one, "@ end"], marks)
        end, peak = live_bytes(lines)
        self.assertLess(peak, 2 * (2 * 40400 + 3 * 4000), "weights, gradients and two batches")
        self.assertGreaterEqual(end, 40400)

    def test_gradient_accumulation_does_not_end_an_iteration(self) -> None:
        def work() -> None:
            model = nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                model(torch.empty(2, 4).cuda()).sum().backward()
            optimizer.step()

        session = traced(work)
        self.assertEqual(1, session.phases.completed)
        self.assertEqual(3, session.trace.lines.count("@ backward"))


@torch2()
class CurrentOperators(unittest.TestCase):
    def attention(self, dtype: torch.dtype, mask: bool) -> list[str]:
        def work() -> None:
            parts = [torch.empty(2, 64, 4, 32, dtype=dtype).cuda().requires_grad_().transpose(1, 2) for _ in range(3)]
            bias = torch.zeros(2, 1, 64, 64, dtype=dtype, device="cuda") if mask else None
            output = F.scaled_dot_product_attention(*parts, attn_mask=bias)
            output.transpose(1, 2).reshape(2, 64, 128).sum().backward()

        return traced(work).trace.lines

    def test_attention_keeps_no_scores(self) -> None:
        for dtype, size in ((torch.float32, 4), (torch.float16, 2)):
            for mask in (False, True):
                sizes = allocations(self.attention(dtype, mask))
                self.assertNotIn(2 * 4 * 64 * 64 * size, sizes)
                self.assertIn(2 * 4 * 64 * 4, sizes, "the log-sum-exp of each row")
                forward = [n for n in sizes if n == 2 * 64 * 128 * size]
                self.assertLessEqual(len(forward), 3 + 1 + 4, "inputs, output, gradients: no copy to join the heads")

    def test_adam_runs_over_all_parameters_at_once(self) -> None:
        def work() -> None:
            model = nn.Sequential(nn.Linear(100, 100), nn.Linear(100, 100)).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.empty(4, 100).cuda()).sum().backward()
            optimizer.step()

        lines = between(traced(work).trace.lines, "@ optimizer", "@ end")
        self.assertEqual(2 * 2 * 40400 + 2 * 40400, sum(allocations(lines)), "two states, and one temporary of all")
        first_free = next(i for i, line in enumerate(lines) if line.startswith("-"))
        self.assertEqual(12, len(allocations(lines[:first_free])))

    def test_autocast_keeps_halves_of_weights(self) -> None:
        def work() -> None:
            model = nn.Linear(100, 100).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.autocast("cuda"):
                data = torch.empty(4, 100).cuda()
                output = model(model(data))
                self.assertEqual(torch.float16, output.dtype)
                loss = F.mse_loss(output, torch.zeros(4, 100, device="cuda"))
            self.assertEqual(torch.float32, loss.dtype)
            loss.backward()
            optimizer.step()

        sizes = allocations(between(traced(work).trace.lines, "@ forward", "@ backward"))
        self.assertEqual(1, sizes.count(100 * 100 * 2), "one copy of the weight for both uses")


if __name__ == "__main__":
    unittest.main()
