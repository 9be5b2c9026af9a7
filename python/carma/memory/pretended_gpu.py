"""`torch.cuda` as a script finds it on a machine with GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable

import torch

from .patches import Patches

if TYPE_CHECKING:
    from .functions import ScriptView

NAME = "NVIDIA A100-SXM4-40GB"
CAPABILITY = (8, 0)
TOTAL_MEMORY = 42_297_786_368
"""Bytes. Scripts see a common GPU, so that they do not scale themselves down."""


class Stream:
    """A stream on which everything is always done."""

    cuda_stream = 0
    stream_id = 0
    priority = 0
    device_type = 1  # that of CUDA

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.device_index = 0

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def record_event(self, event: Any = None) -> "Event":
        return event or Event()

    def synchronize(self) -> None:
        return None

    wait_event = wait_stream = lambda self, *_: None  # noqa: E731


class Event:
    """An event that has happened, a millisecond after any other."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_event = 0

    def elapsed_time(self, _: "Event") -> float:
        return 1.0

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        return None

    record = wait = lambda self, *_: None  # noqa: E731


class _StreamContext:
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> Any:
        return self.stream

    def __exit__(self, *_: Any) -> None:
        return None


def install(patches: Patches, view: "ScriptView", devices: Callable[[], int]) -> None:
    memory = view.memory

    def index_of(device: Any) -> int:
        index = view.gpu_index(device)
        return memory.current_device if index is None else index

    def set_device(device: Any) -> None:
        memory.current_device = index_of(device)

    class DeviceContext:
        """`with torch.cuda.device(1):`"""

        def __init__(self, device: Any) -> None:
            self.idx = index_of(device)
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = memory.current_device
            memory.current_device = self.idx

        def __exit__(self, *_: Any) -> None:
            memory.current_device = self.prev_idx

    class DeviceOf(DeviceContext):
        def __init__(self, tensor: Any) -> None:
            device = memory.storages.device(tensor)
            super().__init__(memory.current_device if device is None or device < 0 else device)

    def allocated(device: Any = None) -> int:
        index = index_of(device)
        return sum(record.size for record in memory.storages.records.values() if record.device == index)

    properties = SimpleNamespace(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=TOTAL_MEMORY, multi_processor_count=108,
        is_integrated=0, is_multi_gpu_board=0, max_threads_per_multi_processor=2048, warp_size=32, regs_per_multiprocessor=65536,
        gcnArchName="", shared_memory_per_block=49152, shared_memory_per_multiprocessor=167936, shared_memory_per_block_optin=166912,
        L2_cache_size=41943040, uuid="GPU-0",
    )
    statistics = {f"{what}.{pool}.{when}": 0 for what in ("allocated_bytes", "reserved_bytes", "active_bytes", "allocation", "segment")
                  for pool in ("all", "small_pool", "large_pool") for when in ("current", "peak", "allocated", "freed")}
    nothing = lambda *_, **__: None  # noqa: E731
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": devices,
        "current_device": lambda: memory.current_device,
        "set_device": set_device,
        "device": DeviceContext,
        "device_of": DeviceOf,
        "get_device_name": lambda *_, **__: NAME,
        "get_device_capability": lambda *_, **__: CAPABILITY,
        "get_device_properties": lambda *_, **__: properties,
        "get_arch_list": lambda: ["sm_80"],
        "can_device_access_peer": lambda *_: True,
        "is_bf16_supported": lambda *_, **__: True,
        "is_initialized": lambda: True,
        "mem_get_info": lambda device=None: (TOTAL_MEMORY - allocated(device), TOTAL_MEMORY),
        "memory_allocated": allocated,
        "max_memory_allocated": allocated,
        "memory_reserved": allocated,
        "max_memory_reserved": allocated,
        "memory_cached": allocated,
        "max_memory_cached": allocated,
        "memory_stats": lambda *_, **__: dict(statistics),
        "memory_summary": lambda *_, **__: "",
        "memory_snapshot": lambda *_, **__: [],
        "utilization": lambda *_, **__: 0,
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "stream": _StreamContext,
        "StreamContext": _StreamContext,
        "current_stream": lambda *_, **__: Stream(),
        "default_stream": lambda *_, **__: Stream(),
        "is_current_stream_capturing": lambda: False,
        "initial_seed": lambda: 0,
        "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8) for _ in range(devices())],
    }
    for name in (
        "init", "_lazy_init", "_lazy_call", "synchronize", "empty_cache", "ipc_collect", "manual_seed", "manual_seed_all", "seed",
        "seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
        "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "set_stream",
    ):
        answers[name] = nothing
    for name, answer in answers.items():
        patches.set_where_present(torch.cuda, name, answer)
    for module_name in ("memory", "random", "streams"):
        module = getattr(torch.cuda, module_name, None)
        for name, answer in answers.items():
            if module is not None:
                patches.set_where_present(module, name, answer)
    patches.set(torch.version, "cuda", torch.version.cuda or "12.4")
    _install_libraries(patches)
    _install_accelerator(patches, memory, devices, DeviceContext, set_device)


def _install_libraries(patches: Patches) -> None:
    nothing = lambda *_, **__: None  # noqa: E731
    for name in ("range_push", "range_pop", "mark"):
        patches.set_where_present(torch.cuda.nvtx, name, nothing)
    patches.set_where_present(torch.backends.cudnn, "is_available", lambda: True)
    patches.set_where_present(torch.backends.cudnn, "version", lambda: 90100)
    patches.set_where_present(torch.backends.cuda, "is_built", lambda: True)
    if hasattr(torch, "compile"):
        patches.set(torch, "compile", _compile)


def _compile(model: Any = None, *_: Any, **__: Any) -> Any:
    """Compiled or not, a model is traced as it was written: fused kernels would need less memory, not more."""
    return (lambda function: function) if model is None else model


def _install_accelerator(patches: Patches, memory: Any, devices: Callable[[], int], context: Any, set_device: Any) -> None:
    patches.set_where_present(torch._C, "_get_accelerator", lambda *_: torch.device("cuda"))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    answers = {
        "is_available": lambda: True,
        "device_count": devices,
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": lambda: memory.current_device,
        "current_device_idx": lambda: memory.current_device,
        "synchronize": lambda *_, **__: None,
        "current_stream": lambda *_, **__: Stream(),
        "device_index": context,
        "set_device_index": set_device,
        "set_device_idx": set_device,
        "set_stream": lambda *_: None,
    }
    for name, answer in answers.items():
        patches.set_where_present(accelerator, name, answer)
