"""Models named on the command line: of timm, of torchvision, or made by a function in a file."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any, Optional

import torch

from . import failure
from .recording import describe_workload
from .recipes import RecipeError, Workload, build
from .recipes.workload import images
from .session import Session


def describe_named(name: str, batch: int, output: Optional[str]) -> int:
    """Writes the description; returns the exit code."""
    try:
        with Session(stop=False) as session:
            text = describe_workload(session, _workload(name, batch))
    except RecipeError as error:
        print(f"carma: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        failure.report(failure.of_exception(error))
        return 3
    if output is None:
        sys.stdout.write(text)
    else:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


def _workload(name: str, batch: int) -> Workload:
    source, _, model = name.rpartition(":")
    if not model or not source:
        raise RecipeError(f"{name!r} names no model: use timm:NAME, torchvision:NAME or FILE.py:FUNCTION")
    if source == "timm":
        return build({"kind": "timm", "model": model, "batch": batch})
    if source == "torchvision":
        return _torchvision(model, batch)
    return _function(source, model, batch)


def _torchvision(name: str, batch: int) -> Workload:
    try:
        import torchvision
    except ImportError:
        raise RecipeError("the package torchvision is not installed: pip install torchvision") from None
    if not hasattr(torchvision.models, name):
        raise RecipeError(f"torchvision {torchvision.__version__} has no model {name!r}")
    size = 299 if name == "inception_v3" else 224
    return Workload(name, getattr(torchvision.models, name)(), images(batch, (3, size, size)), batch_size=batch)


def _function(path: str, name: str, batch: int) -> Workload:
    """The function returns (model, inputs), of a batch when it takes one argument."""
    if not os.path.isfile(path):
        raise RecipeError(f"no such file: {path}")
    spec = importlib.util.spec_from_file_location("carma_described", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise RecipeError(f"{path} has no function {name!r}")
    function = getattr(module, name)
    made: Any = function(batch) if function.__code__.co_argcount else function()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise RecipeError(f"{name} in {path} must return a model and its inputs")
    model, inputs = made
    operands = inputs if isinstance(inputs, (dict, tuple)) else (inputs,)
    return Workload(name, model, lambda: (operands, ()), batch_size=batch)
