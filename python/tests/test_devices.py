"""PyTorch's rules on operands of different devices."""

from __future__ import annotations

import unittest
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

from carma.memory.session import Session
from tests.support import allocations, between, torch2, traced

DIFFERENT = "Expected all tensors to be on the same device.*cuda:0 and cpu"


def refused(work: Callable[[], Any]) -> None:
    with Session(iterations=1):
        work()


class DifferentDevices(unittest.TestCase):
    """A dry run must refuse and accept the same as PyTorch."""

    MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
        "linear": (lambda: nn.Linear(8, 8), lambda: torch.randn(2, 8)),
        "convolution": (lambda: nn.Conv2d(3, 4, 3), lambda: torch.randn(1, 3, 8, 8)),
        "embedding": (lambda: nn.Embedding(10, 4), lambda: torch.zeros(3, dtype=torch.int64)),
        "layer norm": (lambda: nn.LayerNorm(8), lambda: torch.randn(2, 8)),
        "batch norm": (lambda: nn.BatchNorm1d(8), lambda: torch.randn(2, 8)),
        "prelu": (lambda: nn.PReLU(8), lambda: torch.randn(2, 8)),
        "lstm": (lambda: nn.LSTM(8, 8), lambda: torch.randn(2, 3, 8)),
        "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 8), lambda: torch.randn(2, 3, 8)),
    }

    def test_weights_in_host_memory_and_data_on_the_gpu(self) -> None:
        for name, (module, data) in self.MODULES.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "same device.*cuda:0.*cpu"):
                refused(lambda: module()(data().cuda()))

    def test_weights_on_the_gpu_and_data_in_host_memory(self) -> None:
        for name, (module, data) in self.MODULES.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, "same device.*cuda:0.*cpu"):
                refused(lambda: module().cuda()(data()))

    def test_operators(self) -> None:
        def on_gpu(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, device="cuda")

        for name, work in {
            "sum": lambda: on_gpu(4) + torch.randn(4),
            "sum with one element": lambda: on_gpu(4) + torch.randn(1),
            "number on the GPU": lambda: torch.randn(4) * on_gpu(1).sum(),
            "parameter": lambda: on_gpu(4) * nn.Parameter(torch.ones(4)),
            "product": lambda: on_gpu(4, 4) @ torch.randn(4, 4),
            "labels": lambda: F.cross_entropy(on_gpu(4, 10), torch.zeros(4, dtype=torch.int64)),
            "class weights": lambda: F.cross_entropy(on_gpu(4, 10), torch.zeros(4, dtype=torch.int64).cuda(), weight=torch.ones(10)),
            "cat": lambda: torch.cat([on_gpu(4), torch.randn(4)]),
            "where": lambda: torch.where(torch.ones(4, dtype=torch.bool), on_gpu(4), on_gpu(4)),
            "gather": lambda: on_gpu(4, 4).gather(1, torch.zeros(4, 4, dtype=torch.int64)),
            "masked fill": lambda: on_gpu(4).masked_fill(torch.ones(4, dtype=torch.bool), 0.0),
        }.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, DIFFERENT):
                refused(work)

    def test_host_tensors_take_no_indices_on_the_gpu(self) -> None:
        index = "indices should be either on cpu or on the same device as the indexed tensor"
        with self.assertRaisesRegex(RuntimeError, index):
            refused(lambda: torch.randn(4)[torch.zeros(2, dtype=torch.int64).cuda()])
        with self.assertRaisesRegex(RuntimeError, index):
            refused(lambda: nn.Parameter(torch.randn(4))[torch.zeros(2, dtype=torch.int64).cuda()])

    def test_two_gpus(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "cuda:0 and cuda:1"):
            with Session(iterations=1, devices=2):
                torch.ones(4, device="cuda:0") + torch.ones(4, device="cuda:1")

    def test_what_may_cross(self) -> None:
        def work() -> None:
            data = torch.randn(4, 4, device="cuda", requires_grad=True)
            scale = nn.Parameter(torch.ones(()))
            ((data + torch.tensor(1.0)) * scale * 2).sum().backward()
            plain = data.detach()
            rows, mask = torch.tensor([0, 2]), torch.tensor([True, False, True, False])
            self.assertEqual((2, 4), tuple(plain[rows].shape))
            self.assertEqual((2, 4), tuple(plain[mask].shape))
            plain[rows] = 1.0
            plain[mask] = 0.0
            plain[rows] = torch.zeros(2, 4, device="cuda")
            plain.copy_(torch.ones(4, 4))
            plain[0] = torch.ones(4)
            host = torch.zeros(4, 4)
            host.copy_(plain)
            host[1] = plain[1]
            self.assertEqual((4, 4), tuple(host.expand_as(plain).shape))
            torch.where(plain > 0, plain, torch.tensor(0.0))
            plain.masked_fill(plain > 0, torch.tensor(1.0))
            plain.lerp_(torch.ones(4, 4, device="cuda"), 0.5)
            self.assertEqual("cuda", (torch.tensor(2.0) * plain).device.type)
            self.assertEqual(1.0, host[int(plain.argmax()) * 0, 0].item())

        traced(work)

    def test_gradients_of_numbers_return_to_the_host(self) -> None:
        """Weights of several losses work on a GPU from host memory: each is a tensor without dimensions when it is used."""

        def work() -> None:
            model = nn.Linear(8, 2).cuda()
            weights, temperature = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(()))
            optimizer = torch.optim.Adam([*model.parameters(), weights, temperature])
            for _ in range(3):
                optimizer.zero_grad()
                losses = (model(torch.randn(4, 8).cuda()) / temperature).mean(0)
                factors = torch.exp(-weights)
                (losses[0] * factors[0] + losses[1] * factors[1] + weights.sum() * losses[0].detach()).backward()
                self.assertEqual("cpu", weights.grad.device.type)
                nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()

        session = traced(work, iterations=2)
        self.assertEqual(2, session.phases.completed)

    def test_gradients_go_back_where_a_tensor_came_from(self) -> None:
        def work() -> None:
            table, weight = nn.Embedding(10, 8), nn.Parameter(torch.zeros(8, 8))
            first, second = nn.Linear(8, 8).to(device="cuda:0"), nn.Linear(8, 8).to(device="cuda:1")
            optimizer = torch.optim.SGD([*table.parameters(), weight, *first.parameters(), *second.parameters()], lr=0.1, momentum=0.9)
            for _ in range(2):
                optimizer.zero_grad()
                data = first(table(torch.tensor([1, 2])).to("cuda")) @ weight.cuda()
                F.cross_entropy(second(data.to(device=1)).cpu(), torch.zeros(2, dtype=torch.int64)).backward()
                devices = [p.grad.device for p in (table.weight, weight, first.weight, second.weight)]
                self.assertEqual(["cpu", "cpu", "cuda:0", "cuda:1"], [str(device) for device in devices])
                optimizer.step()

        lines = traced(work, iterations=2, devices=2).trace.lines
        for device in (0, 1):
            self.assertIn(8 * 8 * 4, allocations(between(lines, "@ backward", "@ optimizer"), device=device))

    def test_packed_sequences_keep_their_lengths_in_host_memory(self) -> None:
        def work() -> None:
            data = torch.randn(2, 5, 8).cuda()
            packed = nn.utils.rnn.pack_padded_sequence(data, torch.tensor([5, 3]), batch_first=True)
            output, _ = nn.LSTM(8, 16).to(device="cuda")(packed)
            self.assertEqual("cuda", output.data.device.type)

        traced(work)

    def test_a_model_tried_out_in_host_memory(self) -> None:
        def work() -> None:
            model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 10))
            F.cross_entropy(model(torch.randn(2, 3, 8, 8)), torch.zeros(2, dtype=torch.int64))
            rnn = nn.GRU(8, 8)
            rnn(torch.randn(2, 3, 8))[0].sum().backward()
            picked = nn.Embedding(10, 4)(torch.tensor([1, 2]))
            picked.max(1).values[0].backward()

        self.assertEqual([], allocations(traced(work).trace.lines, "wgo"))


@torch2()
class FunctionTransforms(unittest.TestCase):
    def test_gradients_by_sample(self) -> None:
        def work() -> None:
            from torch.func import functional_call, grad, vmap

            model = nn.Linear(8, 3).to(device="cuda")
            weights = {name: weight.detach() for name, weight in model.named_parameters()}
            by_sample = vmap(grad(lambda w, row: functional_call(model, w, (row,)).sum()), in_dims=(None, 0))
            self.assertEqual((4, 3, 8), tuple(by_sample(weights, torch.randn(4, 8, device="cuda"))["weight"].shape))

        traced(work)


if __name__ == "__main__":
    unittest.main()
