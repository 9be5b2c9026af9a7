"""What a script saves comes back when it loads it: values in host memory, shapes and devices of what is on a GPU."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import unittest

import torch

from tests.support import ScriptTest, allocations, torch2, traced


class Saving(unittest.TestCase):
    def there_and_back(self, value, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt")
            torch.save(value, path)
            self.assertLess(os.path.getsize(path), 1 << 20, "tensors without values take no room")
            return torch.load(path, **options)

    def test_host_tensors_keep_their_values(self) -> None:
        def work() -> None:
            found = self.there_and_back({"data": torch.arange(6.0).view(2, 3), "step": 7, "names": ["a"]})
            self.assertEqual(([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 7, ["a"]), (found["data"].tolist(), found["step"], found["names"]))
            buffer = io.BytesIO()
            torch.save(torch.tensor([1, 2]), buffer)
            buffer.seek(0)
            self.assertEqual([1, 2], torch.load(buffer).tolist())

        traced(work)

    def test_a_checkpoint_goes_back_to_the_gpu(self) -> None:
        def work() -> None:
            model = torch.nn.Linear(5000, 3000).cuda()
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.randn(2, 5000, device="cuda")).sum().backward()
            optimizer.step()
            found = self.there_and_back({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
            weight = found["model"]["weight"]
            self.assertEqual(((3000, 5000), torch.float32, "cuda"), (tuple(weight.shape), weight.dtype, weight.device.type))
            model.load_state_dict(found["model"])
            optimizer.load_state_dict(found["optimizer"])
            self.assertEqual("cpu", self.there_and_back(model.state_dict(), map_location="cpu")["weight"].device.type)

        lines = traced(work, iterations=2).trace.lines
        self.assertEqual(3, allocations(lines, "b").count(60_000_000), "what is loaded: the weight and its two moments, nothing for the CPU")

    def test_known_values_on_a_gpu_and_shared_storages(self) -> None:
        def work() -> None:
            table = torch.arange(10, device="cuda")
            found = self.there_and_back({"whole": table, "part": table[2:4], "half": torch.ones(3, device="cuda", dtype=torch.float16)})
            self.assertEqual(([2, 3], "cuda", torch.float16), (found["part"].tolist(), found["whole"].device.type, found["half"].dtype))
            found["whole"].fill_(5)
            self.assertEqual([5, 5], found["part"].tolist())
            self.assertEqual([1, 2], pickle.loads(pickle.dumps(torch.tensor([1, 2], device="cuda"))).tolist())

        traced(work)

    def test_modules_and_parameters(self) -> None:
        def work() -> None:
            module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).cuda()
            options = {"weights_only": False} if hasattr(torch.serialization, "add_safe_globals") else {}
            found = self.there_and_back(module, **options)
            self.assertIsInstance(found[0].weight, torch.nn.Parameter)
            self.assertEqual((2, 4), tuple(found(torch.randn(2, 4, device="cuda")).shape))

        traced(work)


class Files(ScriptTest):
    @torch2("safetensors")
    def test_safetensors(self) -> None:
        result = self.run_script("""
            import torch
            from safetensors import safe_open
            from safetensors.torch import load_file, save_file
            model = torch.nn.Linear(2000, 3000).cuda()
            save_file({"weight": model.weight, "known": torch.arange(4), "seen": torch.arange(3, device="cuda")}, "x.safetensors", {"format": "pt"})
            found = load_file("x.safetensors")
            assert found["weight"].shape == (3000, 2000) and found["weight"].device.type == "cpu", found["weight"]
            assert found["known"].tolist() == [0, 1, 2, 3] and found["seen"].tolist() == [0, 1, 2], found
            assert load_file("x.safetensors", device="cuda")["weight"].is_cuda
            with safe_open("x.safetensors", framework="pt", device="cuda:0") as file:
                assert sorted(file.keys()) == ["known", "seen", "weight"] and file.metadata() == {"format": "pt"}
                assert file.get_slice("weight")[:10].shape == (10, 2000) and file.get_tensor("known").is_cuda
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(3):
                model(torch.randn(2, 2000, device="cuda")).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(0, result.code, result.stderr)
        self.assertEqual(["train.py"], result.files)


class Kernels(ScriptTest):
    @torch2("triton")
    def test_triton_kernels_are_not_launched(self) -> None:
        result = self.run_script("""
            import torch, triton
            import triton.language as tl
            @triton.jit
            def double(source, target, n, BLOCK: tl.constexpr):
                where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                tl.store(target + where, tl.load(source + where, mask=where < n) * 2, mask=where < n)
            weight = torch.nn.Parameter(torch.ones(1000, device="cuda"))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            for _ in range(3):
                known = torch.zeros(4, device="cuda")
                target = torch.empty(1000, device="cuda")
                double[(8,)](weight, target, 1000, BLOCK=128)
                double[(1,)](weight, known, 4, BLOCK=4)
                assert known.tolist() == [1.0] * 4, "unknown after the kernel"
                (weight * target).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(0, result.code, result.stderr)


if __name__ == "__main__":
    unittest.main()
