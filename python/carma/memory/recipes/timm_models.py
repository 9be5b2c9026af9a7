"""Models of the timm library at their default input size."""

from __future__ import annotations

from typing import Any

from .packages import package
from .workload import RecipeError, Workload, images

CLASSES = 1000
OPTIMIZER = "momentum-decay"
"""Unstated in the measured set: SGD with momentum and weight decay fits it best (Adam is too much for models of many parameters)."""


def timm_model(recipe: dict[str, Any]) -> Workload:
    timm = package("timm")
    name, batch = recipe["model"], int(recipe.get("batch", 32))
    try:
        model = timm.create_model(name, pretrained=False, num_classes=int(recipe.get("classes", CLASSES)))
    except RuntimeError as error:
        if "Unknown model" in str(error):
            raise RecipeError(f"timm {timm.__version__} has no model {name!r}") from None
        raise
    shape = tuple(recipe.get("input") or model.default_cfg["input_size"])
    return Workload(name, model, images(batch, shape), optimizer=OPTIMIZER, batch_size=batch)
