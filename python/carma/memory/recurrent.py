"""Recurrent layers as cuDNN runs them: one call for the whole sequence, with a reserve that lives until backward.

cuDNN does not document the size of the reserve. What backward needs of each step is counted: the gates, the cell
state and the output of every layer and direction, and the masks between layers where there is dropout.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
KEPT = {"lstm": 6, "gru": 5, "rnn_tanh": 1, "rnn_relu": 1}
"""Values kept for each unit and step: gates, then cell state and its tanh, or the candidate's two parts."""


class RecurrentLayers(torch.autograd.Function):
    """Results and gradients of the right sizes, in the order in which PyTorch's cuDNN binding allocates them."""

    @staticmethod
    def forward(ctx, sizes, state_shape, kind, data, hidden, cell, *weights):
        steps, width, layers, directions, dropout = sizes
        ctx.sizes = sizes
        ctx.kind = kind
        output = data.new_empty((*data.shape[:-1], width * directions))
        last = data.new_empty(state_shape)
        last_cell = data.new_empty(state_shape) if kind == "lstm" else None
        units = steps * width * layers * directions
        kept = units * KEPT[kind] * data.element_size() + (units if dropout and layers > 1 else 0)
        reserve = data.new_empty(kept, dtype=torch.uint8)
        workspace = data.new_empty(steps * width * directions * GATES[kind])
        del workspace
        ctx.save_for_backward(data, hidden, cell, output, reserve, *weights)
        return (output, last) if last_cell is None else (output, last, last_cell)

    @staticmethod
    def backward(ctx, *gradients):
        data, hidden, cell, output, reserve, *weights = ctx.saved_tensors
        of_data = torch.empty_like(data)
        of_hidden = torch.empty_like(hidden)
        of_cell = torch.empty_like(cell) if ctx.kind == "lstm" else None
        flat = data.new_zeros(sum(weight.numel() for weight in weights))
        of_weights, offset = [], 0
        for weight in weights:
            of_weights.append(flat[offset : offset + weight.numel()].view(weight.shape))
            offset += weight.numel()
        return (None, None, None, of_data, of_hidden, of_cell, *of_weights)


def kernels() -> dict[str, Callable[..., Any]]:
    return {kind: _kernel(kind) for kind in GATES}


def is_packed(args: Any) -> bool:
    """Whether the sizes of the steps stand before the states. They stay in host memory."""
    return isinstance(args[3], (list, tuple))


def _kernel(kind: str) -> Callable[..., Any]:
    def run(func, args, kwargs):
        if is_packed(args):
            data, _, states, weights, _, layers, dropout, train, bidirectional = args[:9]
            steps = data.shape[0]
        else:
            data, states, weights, _, layers, dropout, train, bidirectional = args[:8]
            steps = data.shape[0] * data.shape[1] if data.dim() == 3 else data.shape[0]
        hidden, cell = _states(states)
        directions = 2 if bidirectional else 1
        width = weights[1].shape[1]
        sizes = (steps, width, layers, directions, float(dropout) if train else 0.0)
        return RecurrentLayers.apply(sizes, tuple(hidden.shape), kind, data, hidden, cell, *weights)

    return run


def _states(states: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(states, torch.Tensor):
        return states, states
    return states[0], states[1]
