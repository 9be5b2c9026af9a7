"""Packages that recipes need and that may be missing."""

from __future__ import annotations

import importlib
from typing import Any

from .workload import RecipeError


def package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise RecipeError(f"the package {name} is not installed: pip install {name}") from None
