"""A training job in the form that all recipes give it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import torch

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-2),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9),
    "momentum-decay": lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, weight_decay=1e-4),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=1e-3),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=1e-3),
    "adafactor": lambda parameters: torch.optim.Adafactor(parameters, lr=1e-3),
}
PRECISIONS = {"float32": None, "float16": torch.float16, "bfloat16": torch.bfloat16}


class RecipeError(ValueError):
    """A recipe with an unknown name; the message lists the known ones."""


def cross_entropy(output: Any, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(output, target)


@dataclass
class Workload:
    """A model still in host memory, and how it is trained."""

    name: str
    model: torch.nn.Module
    batch: Callable[[], tuple[Any, Any]]
    """Makes the operands of the model (a tuple, or a dictionary of named ones) and the target, in host memory."""
    loss: Callable[[Any, Any], torch.Tensor] = cross_entropy
    optimizer: str = "adam"
    precision: str = "float32"
    batch_size: int = 0
    rehearsal: int = 0
    """Samples of a forward pass before training, as printing a summary does it."""
    wrap: Callable[[torch.nn.Module], torch.nn.Module] = field(default=lambda model: model)
    description: str = ""
    """A description that its users have, such as config.json; empty: it is made from the model."""


def images(batch: int, shape: tuple[int, ...]) -> Callable[[], tuple[Any, Any]]:
    """Images and labels. Unwritten host memory is enough: only sizes matter."""
    return lambda: ((torch.empty(batch, *shape),), torch.zeros(batch, dtype=torch.int64))


def to_gpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cuda()
    if isinstance(value, dict):
        return {name: to_gpu(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_gpu(item) for item in value)
    return value


def samples(value: Any, count: int) -> Any:
    """Operands of another batch size."""
    if isinstance(value, torch.Tensor):
        return torch.zeros((count, *value.shape[1:]), dtype=value.dtype)
    if isinstance(value, dict):
        return {name: samples(item, count) for name, item in value.items()}
    return type(value)(samples(item, count) for item in value)


def run(model: torch.nn.Module, operands: Any) -> Any:
    return model(**operands) if isinstance(operands, dict) else model(*operands)


def train(workload: Workload, go_on: Callable[[], bool] = lambda: True) -> None:
    """The plain loop of a training script; it ends when the trace is complete, or when `go_on` returns False."""
    if workload.optimizer not in OPTIMIZERS:
        raise RecipeError(f"unknown optimizer {workload.optimizer!r}: use one of {', '.join(OPTIMIZERS)}")
    if workload.precision not in PRECISIONS:
        raise RecipeError(f"unknown precision {workload.precision!r}: use one of {', '.join(PRECISIONS)}")
    lower = PRECISIONS[workload.precision]
    model = workload.wrap(workload.model.cuda())
    model.train()
    optimizer = OPTIMIZERS[workload.optimizer](model.parameters())
    if workload.rehearsal:
        run(model, to_gpu(samples(workload.batch()[0], workload.rehearsal)))
    while go_on():
        operands, target = to_gpu(workload.batch())
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=lower is not None, dtype=lower or torch.float16):
            output = run(model, operands)
            loss = workload.loss(output, target)
        loss.backward()
        optimizer.step()
