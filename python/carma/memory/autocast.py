"""Mixed precision as `torch.autocast("cuda")` does it, which leaves tensors on `meta` alone.

The lists are those of PyTorch's CUDA autocast policy; casts of parameters are kept until the outermost context ends.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch

LOWER = """
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution linear matmul mm mv bmm
addmm addmv addbmm baddbmm addr einsum prelu scaled_dot_product_attention __matmul__ __rmatmul__ chain_matmul
gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell gru lstm rnn_tanh rnn_relu
""".split()

SINGLE = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p pow __pow__ __rpow__ reciprocal rsqrt sinh tan softplus layer_norm
native_layer_norm group_norm norm nuclear_norm cosine_similarity cdist dist pdist renorm logsumexp softmax log_softmax
softmin cumprod cumsum prod sum mse_loss l1_loss smooth_l1_loss huber_loss nll_loss nll_loss2d nll_loss_nd cross_entropy_loss kl_div
binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss
multilabel_margin_loss triplet_margin_loss poisson_nll_loss gaussian_nll_loss soft_margin_loss
""".split()

WIDEST = "addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot cat stack".split()


class Autocast:
    """Casts operands before a function runs, where an autocast context of CUDA is open."""

    def __init__(self) -> None:
        self._lower = set(LOWER)
        self._single = set(SINGLE)
        self._widest = set(WIDEST)
        self._cast: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def operands(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if name in self._lower:
            target: Optional[torch.dtype] = torch.get_autocast_gpu_dtype()
        elif name in self._single:
            target = torch.float32
        elif name in self._widest:
            target = self._widest_of((args, kwargs))
        else:
            return args, kwargs
        if target is None:
            return args, kwargs
        if name == "softmax" or name == "log_softmax" or name in ("sum", "prod", "cumsum", "cumprod"):
            if any(isinstance(value, torch.dtype) for value in (*args, *kwargs.values())):
                return args, kwargs  # an explicit type wins
        convert = self._caster(target)
        return _mapped(args, convert), _mapped(kwargs, convert)

    def forget(self) -> None:
        self._cast.clear()

    def _caster(self, target: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
        def convert(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.is_meta or not tensor.is_floating_point() or tensor.dtype in (target, torch.float64):
                return tensor
            keep = (
                target != torch.float32 and tensor.dtype == torch.float32 and tensor.requires_grad and tensor.is_leaf
                and torch.is_autocast_cache_enabled()
            )
            if not keep:
                return tensor.to(target)
            cached = self._cast.get(id(tensor))
            if cached is None or cached[0] is not tensor:
                cached = (tensor, tensor.to(target))
                self._cast[id(tensor)] = cached
            return cached[1]

        return convert

    @staticmethod
    def _widest_of(operands: Any) -> Optional[torch.dtype]:
        found: list[torch.dtype] = []
        _mapped(operands, lambda tensor: found.append(tensor.dtype) or tensor)
        if torch.float32 in found and any(dtype in (torch.float16, torch.bfloat16) for dtype in found):
            return torch.float32
        return None


def _mapped(value: Any, convert: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return convert(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(item, convert) for item in value)
    if isinstance(value, dict):
        return {name: _mapped(item, convert) for name, item in value.items()}
    return value
