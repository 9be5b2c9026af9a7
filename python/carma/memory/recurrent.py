"""Recurrent layers as cuDNN runs them: one call for the whole sequence, with a reserve that lives until backward.

cuDNN does not document the size of the reserve. The only published reading that names kind and sizes is in issue 2895 of
PyTorch (cuDNN 7, P100): four layers of 320 units, 25,000 steps of sequences: 736,000,000 bytes for LSTM, 864,000,000 for GRU. Both are
exactly 5 (LSTM: gates, cell) or 6 (GRU) values for each unit, step and layer, and the outputs of all layers but the last.
The workspace there is 1.46 times the weights. Without training there is no reserve.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

WORKSPACE = 1.5
"""Of the weights."""
KEPT = {"lstm": 5, "gru": 6, "rnn_tanh": 2, "rnn_relu": 2}
"""Values in the reserve for each unit, step and layer. Those of plain layers were not published: one more than what backward needs."""

NOTE = (
    "recurrent layers: cuDNN does not document its memory for them. The estimate follows sizes published for cuDNN 7, "
    "so an LSTM, GRU or RNN layer may need more"
)


def reserve_bytes(kind: str, steps: int, width: int, layers: int, directions: int, element: int, dropout: bool) -> int:
    units = steps * width * directions
    masks = units * (layers - 1) if dropout else 0
    return units * (KEPT[kind] * layers + layers - 1) * element + masks


class RecurrentLayers(torch.autograd.Function):
    """Results and gradients of the right sizes, in the order in which PyTorch's cuDNN binding allocates them."""

    @staticmethod
    def forward(ctx, sizes, state_shape, kind, swaps, data, hidden, cell, *weights):
        _, width, _, directions, dropout, trains = sizes
        ctx.kind, ctx.swaps = kind, swaps
        ctx.work = int(WORKSPACE * sum(weight.numel() for weight in weights))
        turned = torch.empty_like(data) if swaps else None  # cuDNN wants the steps first
        output = data.new_empty((*data.shape[:-1], width * directions))
        last = data.new_empty(state_shape)
        last_cell = data.new_empty(state_shape) if kind == "lstm" else None
        kept = reserve_bytes(kind, *sizes[:4], data.element_size(), dropout > 0) if trains else 0
        reserve = data.new_empty(kept, dtype=torch.uint8)
        workspace = data.new_empty(ctx.work)
        del workspace, turned
        ctx.save_for_backward(data, hidden, cell, output, reserve, *weights)
        return (output, last) if last_cell is None else (output, last, last_cell)

    @staticmethod
    def backward(ctx, *gradients):
        data, hidden, cell, output, reserve, *weights = ctx.saved_tensors
        turned = [torch.empty_like(data), torch.empty_like(output)] if ctx.swaps else []
        of_data = torch.empty_like(data)
        of_hidden = torch.empty_like(hidden)
        of_cell = torch.empty_like(cell) if ctx.kind == "lstm" else None
        workspace = data.new_empty(ctx.work)
        del workspace
        flat = data.new_zeros(sum(weight.numel() for weight in weights))
        workspace = data.new_empty(ctx.work)
        del workspace, turned
        of_weights, offset = [], 0
        for weight in weights:
            of_weights.append(flat[offset : offset + weight.numel()].view(weight.shape))
            offset += weight.numel()
        return (None, None, None, None, of_data, of_hidden, of_cell, *of_weights)


def kernels() -> dict[str, Callable[..., Any]]:
    return {kind: _kernel(kind) for kind in KEPT}


def is_packed(args: Any) -> bool:
    """Whether the sizes of the steps stand before the states. They stay in host memory."""
    return isinstance(args[3], (list, tuple))


def _kernel(kind: str) -> Callable[..., Any]:
    def run(func, args, kwargs):
        if is_packed(args):
            data, _, states, weights, _, layers, dropout, train, bidirectional = args[:9]
            steps, swaps = data.shape[0], False
        else:
            data, states, weights, _, layers, dropout, train, bidirectional, *batch_first = args[:9]
            steps = data.shape[0] * data.shape[1] if data.dim() == 3 else data.shape[0]
            swaps = bool(batch_first and batch_first[0]) and data.dim() == 3 and 1 not in data.shape[:2]
        hidden, cell = _states(states)
        directions = 2 if bidirectional else 1
        width = weights[1].shape[1]
        sizes = (steps, width, layers, directions, float(dropout) if train else 0.0, bool(train))
        return RecurrentLayers.apply(sizes, tuple(hidden.shape), kind, swaps, data, hidden, cell, *weights)

    return run


def _states(states: Any) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(states, torch.Tensor):
        return states, states
    return states[0], states[1]
