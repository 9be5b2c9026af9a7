"""Descriptions of models: layers, shapes, connections, shared weights."""

from __future__ import annotations

import re
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import carma.memory


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 1)
        self.scale = nn.Parameter(torch.ones(8, 1, 1))
        self.head = nn.Linear(8, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        start = F.relu(self.norm(self.first(images)))
        joined = start + self.second(self.second(start)) * self.scale
        return self.head(F.dropout(joined.mean((2, 3)), 0.1, self.training).view(-1, 8))


def layers(text: str) -> dict[str, dict[str, str]]:
    """A reader of just the TOML that is written: this Python may have none."""
    found = {}
    for block in text.split("[[layer]]")[1:]:
        keys = dict(re.findall(r"^(\w+) = (.+)$", block, re.M))
        found[keys["name"].strip('"')] = keys
    return found


class Describe(unittest.TestCase):
    def setUp(self) -> None:
        self.model = Residual()
        self.weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.text = carma.memory.describe(self.model, torch.randn(4, 3, 16, 16), name="residual")
        self.layers = layers(self.text)

    def test_head(self) -> None:
        self.assertTrue(self.text.startswith('format = "carma-model 1"\nname = "residual"\nbatch = 4\nprecision = "float32"\n'))

    def test_layers_in_order(self) -> None:
        expected = ["first", "norm", "relu", "second", "second#2", "mul", "add", "mean", "dropout", "view", "head"]
        self.assertEqual(expected, list(self.layers))

    def test_facts(self) -> None:
        first = self.layers["first"]
        self.assertEqual(('"Conv2d"', "[4, 8, 8, 8]", "216", "[3, 3]", "[2, 2]", "1"),
                         tuple(first[key] for key in ("type", "output", "parameters", "kernel", "stride", "groups")))
        self.assertEqual("true", self.layers["view"]["view"])
        self.assertEqual("0.1", self.layers["dropout"]["dropout"])
        self.assertEqual("8", self.layers["mul"]["parameters"])

    def test_connections(self) -> None:
        self.assertNotIn("inputs", self.layers["norm"], "the layer before is not named")
        self.assertEqual('["relu", "mul"]', self.layers["add"]["inputs"])
        self.assertEqual('["second#2"]', self.layers["mul"].get("inputs", '["second#2"]'))

    def test_shared_weights_count_once(self) -> None:
        self.assertEqual('"second"', self.layers["second#2"]["shares"])
        self.assertNotIn("parameters", self.layers["second#2"])
        total = sum(int(layer.get("parameters", 0)) for layer in self.layers.values())
        self.assertEqual(sum(p.numel() for p in self.model.parameters()), total)

    def test_the_model_is_left_as_it_was(self) -> None:
        for name, value in self.model.state_dict().items():
            self.assertEqual("cpu", value.device.type)
            self.assertTrue(torch.equal(self.weights[name], value), name)


if __name__ == "__main__":
    unittest.main()
