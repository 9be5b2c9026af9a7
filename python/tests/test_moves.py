"""Moves to a GPU: all forms of `.to`, and tensors that are loaded there."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

from tests.support import allocations, torch2, traced


class Net(nn.Module):
    """Parameters, a buffer that floats and one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Linear(128, 8)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.second(F.relu(self.norm(self.first(data))))


def trained(move: Callable[[nn.Module], Any], dtype: torch.dtype = torch.float32) -> list[str]:
    """The trace of a model that is moved in one way and then trained."""

    def work() -> None:
        model = Net()
        move(model)
        optimizer = torch.optim.Adam(model.parameters())
        while True:
            optimizer.zero_grad()
            model(torch.empty(16, 64, dtype=dtype).cuda()).sum().backward()
            optimizer.step()

    return traced(work, iterations=2).trace.lines


class ModuleMoves(unittest.TestCase):
    """A model on the GPU is the same model, however it was moved there."""

    def check(self, plain: Callable[[nn.Module], Any], forms: dict[str, Callable[[nn.Module], Any]], dtype=torch.float32) -> None:
        expected = trained(plain, dtype)
        self.assertGreater(sum(allocations(expected, "w")), 0)
        for name, move in forms.items():
            with self.subTest(name):
                self.assertEqual(expected, trained(move, dtype))

    def test_a_device_in_any_form(self) -> None:
        self.check(lambda model: model.to("cuda"), {
            "keyword": lambda model: model.to(device="cuda"),
            "keyword with index": lambda model: model.to(device="cuda:0"),
            "keyword number": lambda model: model.to(device=0),
            "keyword device": lambda model: model.to(device=torch.device("cuda")),
            "keyword device with index": lambda model: model.to(device=torch.device("cuda", 0)),
            "number": lambda model: model.to(0),
            "not blocking": lambda model: model.to(device="cuda", non_blocking=True),
            "cuda": lambda model: model.cuda(),
            "cuda of a number": lambda model: model.cuda(0),
            "cuda of a keyword": lambda model: model.cuda(device=0),
            "cuda of a device": lambda model: model.cuda(device=torch.device("cuda:0")),
            "twice": lambda model: model.to(device="cuda").to(device="cuda:0"),
        })

    def test_a_device_and_a_type_in_any_order(self) -> None:
        half = torch.bfloat16
        self.check(lambda model: model.to("cuda", half), {
            "keywords": lambda model: model.to(device="cuda", dtype=half),
            "keywords reversed": lambda model: model.to(dtype=half, device=torch.device("cuda")),
            "mixed": lambda model: model.to("cuda", dtype=half),
            "number and type": lambda model: model.to(dtype=half, device=0),
        }, half)

    def test_as_another_tensor(self) -> None:
        def like(dtype: torch.dtype) -> torch.Tensor:
            return torch.empty(0, dtype=dtype, device="cuda")

        self.check(lambda model: model.to("cuda"), {
            "positional": lambda model: model.to(like(torch.float32)),
            "keyword": lambda model: model.to(tensor=like(torch.float32)),
        })
        self.check(lambda model: model.to("cuda", torch.bfloat16), {"type": lambda model: model.to(like(torch.bfloat16))}, torch.bfloat16)

    def test_empty_on_the_gpu(self) -> None:
        def weights(move: Callable[[nn.Module], Any]) -> list[int]:
            return allocations(trained(move), "wb")

        self.assertEqual(weights(lambda model: model.to("cuda")), weights(lambda model: model.to_empty(device="cuda")))
        self.assertEqual(trained(lambda model: model.to_empty(device="cuda")), trained(lambda model: model.to_empty(device=0)))
        lines = trained(lambda model: model.to_empty(device=torch.device("cuda")))
        self.assertEqual(4 * (64 * 128 + 128 + 128 + 128 + 128 * 8 + 8), sum(allocations(lines, "w")), "parameters count as weights")

    def test_the_second_gpu(self) -> None:
        for move in (lambda model: model.to(device="cuda:1"), lambda model: model.to(device=1), lambda model: model.cuda(device=1)):
            lines = traced(lambda: move(nn.Linear(8, 8)), devices=2).trace.lines
            self.assertEqual([256, 32], allocations(lines, "w", device=1))
            self.assertEqual([], allocations(lines, "w"))

    def test_to_the_host_and_to_meta(self) -> None:
        def work() -> None:
            model = nn.Linear(8, 8).to(device="cuda")
            self.assertEqual("cuda", model.weight.device.type)
            model.to(device="cpu")
            self.assertEqual("cpu", model.weight.device.type)
            for plain in (nn.Linear(8, 8).to(device="meta"), nn.Linear(8, 8).to("meta")):
                self.assertTrue(plain.weight.is_meta)
            with self.assertRaises(TypeError):
                nn.Linear(8, 8).to(place="cuda")

        traced(work)


class TensorMoves(unittest.TestCase):
    def test_a_tensor_in_any_form(self) -> None:
        def lines(move: Callable[[torch.Tensor], torch.Tensor]) -> list[str]:
            def work() -> None:
                moved = move(torch.ones(10, 10))
                self.assertEqual((torch.device("cuda", 0), torch.float16), (moved.device, moved.dtype))

            return traced(work).trace.lines

        half = torch.float16
        expected = lines(lambda tensor: tensor.to("cuda", half))
        for move in (
            lambda tensor: tensor.to(device="cuda", dtype=half),
            lambda tensor: tensor.to(dtype=half, device=0),
            lambda tensor: tensor.to(device=torch.device("cuda"), dtype=half, non_blocking=True),
            lambda tensor: tensor.to(0, half),
            lambda tensor: tensor.to("cuda:0", dtype=half, copy=True),
            lambda tensor: tensor.to(dtype=half, device="cuda:0", copy=False),
        ):
            self.assertEqual(expected, lines(move))

    def test_as_another_tensor(self) -> None:
        def work() -> None:
            like = torch.empty(0, dtype=torch.float16, device="cuda")
            weight = nn.Parameter(torch.ones(4))
            data = torch.ones(4)
            for moved in (data.to(like), data.to(tensor=like), data.type_as(like), weight.to(like), weight.type_as(like)):
                self.assertEqual((torch.device("cuda", 0), torch.float16), (moved.device, moved.dtype))
            back = torch.ones(4, device="cuda").type_as(weight)
            self.assertEqual("cpu", back.device.type)

        traced(work)


class Checkpoints(unittest.TestCase):
    """Tensors of a checkpoint are where `map_location` says, or where they were saved from."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "weights.pt")
        base = torch.arange(8.0)
        torch.save({"weight": torch.ones(8, 4), "views": [base[:4], base[4:]]}, self.path)

    def test_on_the_gpu(self) -> None:
        places = ("cuda", torch.device("cuda:0"), {"cpu": "cuda:0"}, lambda storage, location: storage.cuda(0))

        def work(place: Any) -> None:
            loaded = torch.load(self.path, map_location=place)
            self.assertEqual(torch.device("cuda", 0), loaded["weight"].device)
            self.assertEqual([4.0, 5.0, 6.0, 7.0], loaded["views"][1].tolist())
            model = nn.Linear(4, 8, bias=False)
            model.weight = nn.Parameter(loaded["weight"])
            model(torch.randn(2, 4, device="cuda"))

        for place in places:
            with self.subTest(place):
                lines = traced(lambda: work(place)).trace.lines
                self.assertEqual([32, 128], sorted(allocations(lines, "wb")), "views share their storage")

    def test_in_host_memory(self) -> None:
        def work() -> None:
            for place in (None, "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage):
                self.assertEqual("cpu", torch.load(self.path, map_location=place)["weight"].device.type)

        self.assertEqual([], allocations(traced(work).trace.lines))


class ReplacedData(unittest.TestCase):
    def test_values_for_a_parameter_in_host_memory(self) -> None:
        def work() -> None:
            model = nn.Linear(4, 8, bias=False)
            model.weight.data = torch.ones(8, 4)
            self.assertEqual(("cpu", 32.0), (model.weight.device.type, model.weight.sum().item()))
            model.cuda()
            model.weight.data = model.weight.data.cpu()
            self.assertEqual("cpu", model.weight.device.type)

        self.assertEqual([128], allocations(traced(work).trace.lines, "w"))


@torch2("safetensors")
class Safetensors(unittest.TestCase):
    def test_loaded_on_the_gpu(self) -> None:
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "weights.safetensors")
            save_file({"weight": torch.ones(8, 4)}, path)
            traced(lambda: self.assertEqual("cuda", load_file(path, device="cuda")["weight"].device.type))


if __name__ == "__main__":
    unittest.main()
