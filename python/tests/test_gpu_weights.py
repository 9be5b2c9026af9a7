"""Scripts whose weights stay in host memory: an estimate without weights would be too low."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import torch
from torch import nn

import carma.memory
from tests.support import ScriptTest

OFFLOADED = """
    import torch
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            {parameters}
        def forward(self, data):
            return data * {scale}
    model = Scaled()
    image = torch.randn(8, 8, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD({optimized}, lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model({data}).sum().backward()
        optimizer.step()
"""


class WeightsOnGpu(ScriptTest):
    def told(self, **parts: str) -> str:
        result = self.run_script(OFFLOADED.format(**parts))
        self.assertEqual(3, result.code, result.stderr)
        self.assertEqual([], result.trace)
        return json.loads(result.stderr.splitlines()[-1])["error"]

    def test_no_weights_on_the_gpu(self) -> None:
        parts = {"parameters": "self.scale = torch.nn.Parameter(torch.ones(8))", "scale": "self.scale.sum()"}
        reason = self.told(**parts, optimized="model.parameters()", data="torch.randn(8, 8, device='cuda')")
        self.assertIn("no weights on a GPU", reason)
        self.assertIn("model.to(", reason)

    def test_no_weights_on_the_gpu_in_a_block(self) -> None:
        class Scaled(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.scale = nn.Parameter(torch.ones(8))

            def forward(self, data: torch.Tensor) -> torch.Tensor:
                return data * self.scale.sum()

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "step.trace"
            with self.assertRaisesRegex(RuntimeError, "no weights on a GPU"), carma.memory.trace(str(path)):
                Scaled()(torch.randn(8, 8, device="cuda"))
            self.assertFalse(path.exists())

    def test_a_model_without_parameters(self) -> None:
        result = self.run_script(OFFLOADED.format(parameters="pass", scale="2", optimized="[image]", data="image"))
        self.assertEqual(0, result.code, result.stderr)

    def test_the_line_with_two_devices_is_named(self) -> None:
        parts = {"parameters": "self.scale = torch.nn.Parameter(torch.ones(8))", "scale": "self.scale"}
        reason = self.told(**parts, optimized="model.parameters()", data="torch.randn(8, 8, device='cuda')")
        self.assertIn("Expected all tensors to be on the same device", reason)

    def test_a_keyword_does_not_lower_the_estimate(self) -> None:
        source = """
            import sys, torch
            model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
            model.to(device="cuda") if "keyword" in sys.argv else model.to("cuda")
            optimizer = torch.optim.Adam(model.parameters())
            while True:
                optimizer.zero_grad()
                model(torch.randn(8, 64).to(device="cuda")).sum().backward()
                optimizer.step()
        """
        keyword, positional = self.run_script(source, "keyword"), self.run_script(source)
        self.assertEqual(0, keyword.code, keyword.stderr)
        self.assertEqual(positional.trace, keyword.trace)


if __name__ == "__main__":
    unittest.main()
