"""What a dry run does not follow is named, where it is used and only there."""

from __future__ import annotations

import json
import unittest

import torch
from torch import nn

from carma.memory import not_followed
from tests.support import ScriptTest, torch2, traced

TRAINING = """
    model = torch.nn.Linear(4, 4).cuda()
    {change}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        {call}.sum().backward()
        optimizer.step()
"""


class Named(ScriptTest):
    def notes(self, imports: str, change: str = "pass", call: str = "model(torch.ones(2, 4, device='cuda'))", **files: str) -> list[str]:
        packages = "".join(f"    files[{name!r}] = {text!r}\n" for name, text in files.items())
        source = f"    import sys, types, torch\n    files = {{}}\n{packages}" + """
    for name, text in files.items():
        module = types.ModuleType(name)
        exec(text, module.__dict__)
        sys.modules[name] = module
        del module
""" + f"    {imports}\n" + TRAINING.format(change=change, call=call)
        result = self.run_script(source)
        self.assertEqual(0, result.code, result.stderr)
        return json.loads(result.trace[1]).get("notes", [])

    def test_a_library_with_memory_of_its_own(self) -> None:
        [note] = self.notes("import cupy", cupy="zeros = None")
        self.assertIn("CuPy, whose GPU memory is not in the estimate", note)

    def test_a_library_that_another_one_imports(self) -> None:
        self.assertEqual([], self.notes("pass", jax="numpy = None"))

    def test_graphs_are_told_though_they_come_after_training(self) -> None:
        self.assertEqual([not_followed.GRAPHS], self.notes("def capture():\n        return torch.cuda.CUDAGraph()"))

    @torch2()
    def test_compiled_models(self) -> None:
        self.assertEqual([not_followed.FUSED], self.notes("pass", "model = torch.compile(model)"))
        self.assertEqual([not_followed.GRAPHS], self.notes("pass", "model = torch.compile(model, mode='reduce-overhead')"))
        self.assertEqual([not_followed.FUSED], self.notes("pass", "model.compile()"))

    @torch2("triton")
    def test_kernels_of_triton(self) -> None:
        kernels = """
            import torch, triton
            import triton.language as tl
            @triton.jit
            def double(source, target, n, BLOCK: tl.constexpr):
                offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
                tl.store(target + offsets, 2 * tl.load(source + offsets, mask=offsets < n), mask=offsets < n)
            model = torch.nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while True:
                data = torch.ones(2, 4, device="cuda")
                output = model(data)
                target = torch.empty_like(data)
                double[(1,)](data, target, 8, BLOCK=8)
                (output * target).sum().backward()
                optimizer.step()
        """
        result = self.run_script(kernels)
        self.assertEqual(0, result.code, result.stderr)
        [note] = json.loads(result.trace[1])["notes"]
        self.assertIn("3 launches of Triton kernels are left out", note)


class Operators(unittest.TestCase):
    @torch2()
    def test_operators_of_other_libraries(self) -> None:
        library = torch.library.Library("carma_test", "DEF")
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: torch.empty_like(x), "Meta")
        library.impl("double", lambda x: x * 2, "CPU")

        def work() -> None:
            model = nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            (model(torch.ones(2, 4, device="cuda")) * torch.ops.carma_test.double(torch.ones(4, device="cuda"))).sum().backward()
            optimizer.step()

        notes = [note for note in traced(work).trace.facts["notes"] if note != not_followed.GRAPHS]  # this file has its words
        self.assertIn("operators of carma_test", notes[0])
        self.assertEqual(1, len(notes))


if __name__ == "__main__":
    unittest.main()
