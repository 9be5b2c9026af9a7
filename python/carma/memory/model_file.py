"""The `carma-model 1` description of a network, as TOML."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Optional

FORMAT = "carma-model 1"


@dataclass
class Layer:
    """One leaf module or functional operator, as it ran."""

    name: str
    type: str
    output: list[int]
    inputs: Optional[list[str]] = None
    parameters: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    """Keys that not every layer has: kernel, stride, groups, in_place, view, heads, dropout, dtype, shares."""
    module: str = ""


@dataclass
class ModelDescription:
    name: str
    batch: int
    precision: str
    layers: list[Layer] = field(default_factory=list)

    def to_toml(self) -> str:
        lines = [
            _line("format", FORMAT), _line("name", self.name), _line("batch", self.batch), _line("precision", self.precision),
        ]
        for layer in self.layers:
            lines.append("\n[[layer]]")
            lines += [_line("name", layer.name), _line("type", layer.type)]
            if layer.inputs is not None:
                lines.append(_line("inputs", layer.inputs))
            lines.append(_line("output", layer.output))
            if layer.parameters:
                lines.append(_line("parameters", layer.parameters))
            lines += [_line(key, value) for key, value in layer.facts.items()]
            if layer.module:
                lines.append(_line("module", layer.module))
        return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)  # a JSON string is a TOML basic string
