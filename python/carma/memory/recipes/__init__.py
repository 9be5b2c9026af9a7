"""Training jobs that can be named in a line, for evaluation against measured sets."""

from __future__ import annotations

from typing import Any, Callable

from . import random_networks, real_models, timm_models, xmem_models
from .workload import RecipeError, Workload, to_gpu, train

KINDS: dict[str, Callable[[dict[str, Any]], Workload]] = {
    "timm": timm_models.timm_model,
    "mlp": random_networks.mlp,
    "cnn": random_networks.cnn,
    "transformer": random_networks.transformer,
    "real": real_models.real_model,
    "xmem": xmem_models.xmem_model,
}


def build(recipe: dict[str, Any]) -> Workload:
    """The workload of a recipe; `optimizer` and `precision` in it win over the kind's own."""
    kind = recipe.get("kind", "")
    if kind not in KINDS:
        raise RecipeError(f"unknown kind of recipe {kind!r}: use one of {', '.join(KINDS)}")
    try:
        workload = KINDS[kind](recipe)
    except KeyError as missing:
        raise RecipeError(f"a recipe of kind {kind!r} needs {missing}") from None
    workload.optimizer = recipe.get("optimizer", workload.optimizer)
    workload.precision = recipe.get("precision", workload.precision)
    return workload


__all__ = ["RecipeError", "Workload", "build", "to_gpu", "train"]
