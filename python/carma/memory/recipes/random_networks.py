"""The random MLPs, CNNs and Transformers of the measured sets, rebuilt from the names of their files."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch
from torch import nn

from .random_cnn import RandomCnn
from .workload import RecipeError, Workload, images

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU, "gelu": nn.GELU, "selu": nn.SELU, "elu": nn.ELU, "tanh": nn.Tanh, "silu": nn.SiLU, "swish": nn.SiLU,
    "mish": nn.Mish, "softplus": nn.Softplus, "leaky_relu": nn.LeakyReLU, "leakyrelu": nn.LeakyReLU, "prelu": nn.PReLU,
    "identity": nn.Identity, "none": nn.Identity, "sigmoid": nn.Sigmoid,
}


DENSE_TRANSITIONS = ((0, 5), (0,))
"""After which blocks a dense network narrows: not told by the file's name, so `parameters` (the row's total) decides; else the last."""


FIELD = re.compile(
    "(input_channels|num_classes|depth|arch|base_filters|batch_size|batch|input_size|act|dropout_rate|dropout|batchnorm|input|output|"
    "embedding_size|num_layers|num_heads|ff_hidden_size|seq_length|num_samples):"
)


def fields(file_name: str) -> dict[str, str]:
    """`depth:9_act:leaky_relu_dropout:0.3_dropout:True` as a dictionary; the second dropout is `use_dropout`."""
    parts = FIELD.split(file_name[: -len(".out")] if file_name.endswith(".out") else file_name)
    found: dict[str, str] = {}
    for name, value in zip(parts[1::2], parts[2::2]):
        found["use_dropout" if name in found else name] = value.rstrip("_")
    return found


def activation(name: str) -> nn.Module:
    try:
        return ACTIVATIONS[name.lower()]()
    except KeyError:
        raise RecipeError(f"unknown activation {name!r}: use one of {', '.join(ACTIVATIONS)}") from None


def mlp(recipe: dict[str, Any]) -> Workload:
    """`layers` is the row's list of (type, activations, parameters), or its text."""
    facts = fields(recipe["file_name"])
    layers = recipe["layers"]
    if isinstance(layers, str):
        layers = ast.literal_eval(layers)
    width = int(facts["input"])
    batch = int(facts["batch"])
    size = width
    modules: list[nn.Module] = []
    for kind, activations, _ in layers:
        if kind == "linear":
            modules.append(nn.Linear(width, activations))
            width = activations
        elif kind == "batch_normalization":
            modules.append(nn.BatchNorm1d(width))
        elif kind == "dropout":
            modules.append(nn.Dropout(float(facts["dropout"])))
        elif kind.lower() == "softmax":
            modules.append(nn.Softmax(dim=1))
        else:
            modules.append(activation(kind))
    return Workload("mlp", nn.Sequential(*modules), images(batch, (size,)), batch_size=batch, rehearsal=2)


def cnn(recipe: dict[str, Any]) -> Workload:
    facts = fields(recipe["file_name"])
    batch, size, channels = int(facts["batch"]), int(facts["input_size"]), int(facts["input_channels"])
    for transitions in DENSE_TRANSITIONS:
        model = RandomCnn(
            arch=facts["arch"], channels=channels, classes=int(facts["num_classes"]), depth=int(facts["depth"]),
            base=int(facts["base_filters"]), size=size, make_activation=lambda: activation(facts["act"]),
            dropout=float(facts["dropout"]) if facts["use_dropout"] == "True" else None, batch_norm=facts["batchnorm"] == "True",
            transitions=transitions,
        )
        if facts["arch"] != "dense" or sum(p.numel() for p in model.parameters()) == recipe.get("parameters"):
            break
    return Workload("cnn", model, images(batch, (channels, size, size)), batch_size=batch, rehearsal=2)


class RandomTransformer(nn.Module):
    """An encoder over tokens: post-norm layers, learned positions, mean over the sequence, one linear layer."""

    def __init__(
        self, vocabulary: int, length: int, width: int, layers: int, heads: int, hidden: int, dropout: float, classes: int
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(1, length, width))
        layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(tokens) + self.positions).mean(dim=1))


def transformer(recipe: dict[str, Any]) -> Workload:
    facts = fields(recipe["file_name"])
    batch, length = int(facts["batch_size"]), int(facts["seq_length"])
    model = RandomTransformer(
        vocabulary=int(facts["input_size"]), length=length, width=int(facts["embedding_size"]), layers=int(facts["num_layers"]),
        heads=int(facts["num_heads"]), hidden=int(facts["ff_hidden_size"]), dropout=float(facts["dropout_rate"]),
        classes=int(facts["num_classes"]),
    )
    tokens = lambda: ((torch.zeros(batch, length, dtype=torch.int64),), torch.zeros(batch, dtype=torch.int64))  # noqa: E731
    return Workload("transformer", model, tokens, batch_size=batch, rehearsal=1)
