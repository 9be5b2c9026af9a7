"""Many recipes in one process, so that PyTorch is imported once: JSON lines in, JSON lines out."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import time
from typing import Any, TextIO

from . import recipes
from .phases import TraceComplete
from .session import Session
from .time_limit import TimeLimitReached, time_limit

SECONDS_FOR_ONE = 120


def trace_recipe(recipe: dict[str, Any], iterations: int = 3) -> Session:
    """Trains what a recipe names and returns the finished session."""
    session = Session(iterations=iterations, devices=int(recipe.get("gpus", 1)))
    with contextlib.suppress(TraceComplete), session:
        recipes.train(recipes.build(recipe))
    session.trace.facts["recipe"] = recipe
    return session


def run_one(request: dict[str, Any]) -> None:
    mode = request.get("mode", "trace")
    recipe = request["recipe"]
    if mode == "trace":
        trace_recipe(recipe).trace.write(request["output"])
    elif mode == "describe":
        from .recording import describe_recipe

        text = describe_recipe(recipe)
        with open(request["output"], "w", encoding="utf-8") as file:
            file.write(text)
    elif mode == "measure":
        from .measure import measure

        with open(request["output"], "w", encoding="utf-8") as file:
            json.dump(measure(recipes.build(recipe)), file)
    else:
        raise recipes.RecipeError(f"unknown mode {mode!r}: use trace, describe or measure")


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answers every request, whatever happens to the one before it."""
    for line in requests:
        if not line.strip():
            continue
        began = time.monotonic()
        answer: dict[str, Any] = {"id": None, "ok": False}
        try:
            request = json.loads(line)
            answer["id"] = request.get("id")
            with time_limit(SECONDS_FOR_ONE), contextlib.redirect_stdout(sys.stderr):
                run_one(request)
            answer["ok"] = True
        except TimeLimitReached:
            answer["error"] = f"longer than {SECONDS_FOR_ONE} s"
        except Exception as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        gc.collect()
        answer["seconds"] = round(time.monotonic() - began, 3)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
