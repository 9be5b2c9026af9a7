"""PyTorch's rules on operands of different devices. Kernels on `meta` do not know them: all operands are on `meta`.

Operands must be on one device, with these exceptions:

- A tensor in host memory without dimensions goes with any GPU, as a number does.
- Indices in host memory select from a tensor on a GPU.
- Copies cross devices, and so do operators that only look at shapes.
- Some operators want one operand in host memory: lengths of packed sequences, states of random numbers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Iterable, Optional

import torch

from .outputs import tensors_in
from .storages import HOST, Storages

CROSSING = frozenset("""
copy copy_ _to_copy to slice_scatter select_scatter diagonal_scatter as_strided_scatter slice_inverse
expand_as view_as reshape_as resize_as_ is_same_size is_set_to set_ _has_same_storage_numel _make_dual _new_zeros_with_same_feature_meta
_pack_padded_sequence _pack_padded_sequence_backward _pad_packed_sequence _cudnn_rnn _cudnn_rnn_backward
ctc_loss _ctc_loss _ctc_loss_backward _cudnn_ctc_loss _use_cudnn_ctc_loss
_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
_scaled_dot_product_cudnn_attention_backward _flash_attention_backward _efficient_attention_backward
bernoulli bernoulli_ equal
""".split())
"""Operators that PyTorch marks with `device_check: NoCheck`, other than elementwise ones, which check by themselves."""

CROSSING_GROUPS = ("_foreach_", "_fused_", "_amp_", "_nested_", "_sparse_", "sparse_")
"""Beginnings of names. Lists are worked through one element after the other, each on its own device."""

UNKNOWN = -3
"""On `meta` for the script too. With operands on a GPU that is an error there, so the tensor's making was not seen."""

INDEXING = frozenset("index index_put index_put_ _index_put_impl_ _unsafe_index _unsafe_index_put".split())


def check(storages: Storages, func: Any, args: Any, kwargs: Any) -> bool:
    """Raises PyTorch's error where a GPU would refuse the operands. Says whether a number in host memory went with them."""
    rule = _rule_of(func)
    return rule is not None and rule(storages, func, args, kwargs)


@lru_cache(maxsize=None)
def _rule_of(func: Any) -> Optional[Callable[..., bool]]:
    if not hasattr(func, "_schema"):
        return None  # an operator that takes functions: what they call is checked
    namespace, _, name = func._schema.name.partition("::")
    if namespace != "aten" or name in CROSSING or name.startswith(CROSSING_GROUPS):
        return None  # other libraries have rules of their own
    return _indices if name in INDEXING else _one_device


def _one_device(storages: Storages, func: Any, args: Any, kwargs: Any) -> bool:
    return together(storages, tensors_in((args, kwargs)), func._schema.name.replace("aten::", ""))


def together(storages: Storages, tensors: Iterable[torch.Tensor], name: str) -> bool:
    first = None
    numbers = False
    unknown: Optional[list[torch.Tensor]] = None
    for tensor in tensors:
        device = _device(storages, tensor)
        if device == UNKNOWN:
            unknown = [tensor] if unknown is None else [*unknown, tensor]
            continue
        if device is None or device == first or tensor.layout != torch.strided or tensor.numel() == 0:
            continue  # an empty tensor does not matter to memory
        if device == HOST and tensor.dim() == 0:
            numbers = True
        elif first is None:
            first = device
        else:
            raise _different(first, device, name)
    if unknown is not None and first is not None and first >= 0:
        for tensor in unknown:
            storages.adopt(tensor, first)
    return numbers and first not in (None, HOST)


def _indices(storages: Storages, func: Any, args: Any, kwargs: Any) -> bool:
    target = _device(storages, args[0])
    if target is None or target == UNKNOWN:
        return False
    for index in args[1]:
        if index is not None and _device(storages, index) not in (None, UNKNOWN, HOST, target):
            raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({_name(target)})")
    if len(args) > 2 and isinstance(args[2], torch.Tensor) and args[2].dim() > 0:
        together(storages, (args[0], args[2]), func._schema.name.replace("aten::", ""))
    return False


def _device(storages: Storages, tensor: torch.Tensor) -> Optional[int]:
    """The device that the script sees; None where that is not certain, UNKNOWN where the tensor is not followed."""
    if not tensor.is_meta:
        return HOST
    record = storages.find(tensor)
    if record is None:
        return UNKNOWN
    return None if record.assumed else record.device


def _different(one: int, other: int, name: str) -> RuntimeError:
    devices = " and ".join(_name(device) for device in sorted((one, other), key=lambda device: (device == HOST, device)))
    return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {devices}! (operands of {name})")


def _name(device: int) -> str:
    return "cpu" if device == HOST else f"cuda:{device}"
