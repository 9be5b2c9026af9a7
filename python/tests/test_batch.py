"""Recipes: networks rebuilt from their names, and the service that answers them."""

from __future__ import annotations

import io
import json
import tempfile
import unittest
from pathlib import Path

from carma.memory import batch, recipes
from tests.allocator import MIB, peak_reserved
from tests.support import torch2

CNN = (
    "input_channels:3_num_classes:685_depth:27_arch:residual_base_filters:18_batch:44_input_size:122_act:tanh_"
    "dropout:0.27_dropout:False_batchnorm:True.out"
)
DENSE = (
    "input_channels:3_num_classes:730_depth:28_arch:dense_base_filters:25_batch:2_input_size:170_act:leaky_relu_"
    "dropout:0.27_dropout:False_batchnorm:False.out"
)
TRANSFORMER = (
    "num_classes:656_embedding_size:128_num_layers:3_num_heads:4_ff_hidden_size:500_dropout_rate:0.13_seq_length:64_"
    "input_size:8139_num_samples:4967_batch_size:32.out"
)
MLP = "input:1230_output:172_depth:1_arch:pyramid_batch:873_act:gelu_dropout:0.27_dropout:False_batchnorm:False.out"


def parameters(recipe: dict) -> int:
    return sum(parameter.numel() for parameter in recipes.build(recipe).model.parameters())


class Recipes(unittest.TestCase):
    def test_networks_have_the_parameters_of_the_measured_ones(self) -> None:
        self.assertEqual(247238, parameters({"kind": "cnn", "file_name": CNN}))
        self.assertEqual(3669944, parameters({"kind": "cnn", "file_name": DENSE, "parameters": 3669944}))
        layers = "[('linear', 615, 757065), ('GELU', 615, 0), ('linear', 172, 105952), ('Softmax', 172, 0)]"
        self.assertEqual(757065 + 105952, parameters({"kind": "mlp", "file_name": MLP, "layers": layers}))

    def test_unknown_things_are_named(self) -> None:
        for recipe in ({"kind": "rnn"}, {"kind": "cnn"}, {"kind": "real", "task": "alexnet"}):
            with self.assertRaises(recipes.RecipeError):
                recipes.build(recipe)

    def test_service_goes_on_after_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            output = str(Path(folder) / "t.trace")
            requests = [
                {"id": "1", "recipe": {"kind": "rnn"}, "mode": "trace", "output": output},
                {"id": "2", "recipe": {"kind": "transformer", "file_name": TRANSFORMER}, "mode": "trace", "output": output},
                {"id": "3", "recipe": {"kind": "cnn", "file_name": CNN}, "mode": "describe", "output": output + ".toml"},
            ]
            answers = io.StringIO()
            batch.serve(io.StringIO("".join(json.dumps(request) + "\n" for request in requests) + "not json\n"), answers)
            told = [json.loads(line) for line in answers.getvalue().splitlines()]
            self.assertEqual([False, True, True, False], [answer["ok"] for answer in told])
            self.assertIn("unknown kind", told[0]["error"])
            self.assertTrue(Path(output).read_text().startswith("carma-memory-trace 1\n"))
            self.assertIn('type = "Conv2d"', Path(output + ".toml").read_text())


@torch2("timm", "torchvision", "transformers")
class MeasuredModels(unittest.TestCase):
    """Three rows of the measured set: context and peak reserved memory add up to the measured value."""

    CONTEXT = 524

    def estimate(self, task: str, size: int) -> float:
        session = batch.trace_recipe({"kind": "real", "task": task, "batch": size})
        return peak_reserved(session.trace.lines).reserved / MIB + self.CONTEXT

    def test_against_measurements(self) -> None:
        rows = (("resnet18_cifar100_20e_1", 32, 788), ("efficientNet_cifar100_20e_2", 64, 720), ("BERT_large", 8, 12622))
        for task, size, measured in rows:
            self.assertAlmostEqual(1.0, self.estimate(task, size) / measured, delta=0.01, msg=task)

    def test_unknown_timm_model(self) -> None:
        with self.assertRaisesRegex(recipes.RecipeError, "has no model"):
            recipes.build({"kind": "timm", "model": "resnet5", "batch": 2})


if __name__ == "__main__":
    unittest.main()
