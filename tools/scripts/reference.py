"""The independent reference of the dry run: runs a script for real on the CPU, with real values, and follows the memory of its "GPU" tensors.

    python reference.py REPORT.json STEPS SECONDS -- train.py ARGS

A tensor that the script moves to a GPU, or makes there, is a real CPU tensor whose storage is marked; what is computed from marked
storages is marked too. Marked bytes that are alive give the peak. It shares no code with `carma.memory`. It needs PyTorch 2.1 or later.
"""

from __future__ import annotations

import collections
import contextlib
import json
import multiprocessing.process
import os
import runpy
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import torch
import torch._dynamo
import torch.distributed
import torch.nn.parallel.distributed
import torch.utils.data
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1", WANDB_MODE="disabled", HF_DEACTIVATE_ASYNC_LOAD="1")

OPTIMIZER = sys.modules["torch.optim.optimizer"]
TOTAL = 40 << 30


class Done(BaseException):
    """Enough steps."""


class Marked:
    """Storages that would be on the GPU."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.live = self.peak = 0

    def has(self, tensor: torch.Tensor) -> bool:
        try:
            return tensor.untyped_storage()._cdata in self.sizes
        except (NotImplementedError, RuntimeError):
            return False

    def add(self, tensor: torch.Tensor) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return
        address, size = storage._cdata, storage.nbytes()
        if address in self.sizes:
            return
        self.sizes[address] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._gone, address).atexit = False

    def _gone(self, address: int) -> None:
        self.live -= self.sizes.pop(address, 0)


marked = Marked()
making = False  # a call that names a GPU is under way


def tensors(values):
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


class Follow(TorchDispatchMode):
    """Marks what is computed from marked tensors."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        given = tensors((args, kwargs))
        result = func(*args, **kwargs)
        if making or is_on_gpu(given):
            known = {id(tensor) for tensor in given}
            own = {storage(tensor) for tensor in given}
            for tensor in tensors(result):
                if id(tensor) not in known and (making or storage(tensor) not in own):
                    marked.add(tensor)
        return result


def is_on_gpu(given) -> bool:
    """Tensors decide before single numbers, which go with any device."""
    there = [tensor for tensor in given if marked.has(tensor)]
    return any(tensor.dim() for tensor in there) or bool(there) and not any(tensor.dim() for tensor in given)


def storage(tensor):
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def is_gpu(device) -> bool:
    if isinstance(device, bool) or device is None:
        return False
    return isinstance(device, int) or torch.device(device).type == "cuda"


@contextlib.contextmanager
def on_gpu(yes: bool = True):
    global making
    before, making = making, yes
    try:
        yield
    finally:
        making = before


@contextlib.contextmanager
def unmarked():
    """Work whose results are in host memory, whatever its operands."""
    with torch._C._DisableTorchDispatch() if hasattr(torch._C, "_DisableTorchDispatch") else contextlib.nullcontext():
        yield


class ToHost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, dtype):
        ctx.dtype = tensor.dtype
        with unmarked():
            return tensor.detach().to(dtype, copy=True)

    @staticmethod
    def backward(ctx, gradient):
        with on_gpu():
            return gradient.to(ctx.dtype, copy=True), None


KEPT = {"lstm": 5, "gru": 6, "rnn_tanh": 2, "rnn_relu": 2}
"""Values in cuDNN's reserve for each unit, step and layer: as read for LSTM and GRU (pytorch/pytorch, issue 2895), a guess for the others."""


class Recurrent(torch.autograd.Function):
    """Computed as on the CPU, whose own memory does not count; marked are the results and what cuDNN keeps."""

    @staticmethod
    def forward(ctx, func, reserve, spec, *given):
        leaves = [value.detach().requires_grad_(value.is_floating_point()) if isinstance(value, torch.Tensor) else value for value in given]
        with unmarked(), torch.enable_grad():
            results = func(*tree_unflatten(leaves, spec))
            plain = [result.detach() for result in results]
        ctx.leaves, ctx.results = leaves, results
        with on_gpu():
            ctx.save_for_backward(torch.empty(reserve, dtype=torch.uint8))
            return tuple(result.clone() for result in plain)

    @staticmethod
    def backward(ctx, *gradients):
        ctx.saved_tensors
        wanted = [leaf for leaf in ctx.leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        with unmarked():
            found_ = iter(torch.autograd.grad(ctx.results, wanted, gradients, allow_unused=True, retain_graph=True))
        with on_gpu():
            own = [next(found_) if isinstance(leaf, torch.Tensor) and leaf.requires_grad else None for leaf in ctx.leaves]
            return None, None, None, *(None if gradient is None else gradient.clone() for gradient in own)


def recurrent(func, name: str, args):
    packed = isinstance(args[3], (list, tuple))
    data, weights = args[0], args[3 if packed else 2]
    layers, dropout, train, bidirectional = args[5:9] if packed else args[4:8]
    steps = data.shape[0] if packed or data.dim() == 2 else data.shape[0] * data.shape[1]
    units = steps * weights[1].shape[1] * (2 if bidirectional else 1)
    reserve = units * (KEPT[name] * layers + layers - 1) * data.element_size() if train else 0
    values, spec = tree_flatten(tuple(args))
    return Recurrent.apply(func, reserve, spec, *values)


class Pretend(TorchFunctionMode):
    """Devices as the script sees them."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "__get__":
            attribute = getattr(getattr(func, "__self__", None), "__name__", "")
            if attribute == "device":
                return torch.device("cuda", 0) if marked.has(args[0]) else func(*args)
            if attribute in ("is_cuda", "is_cpu"):
                return marked.has(args[0]) == (attribute == "is_cuda")
        if func is torch.Tensor.cuda:
            return self.moved(args[0], True, None, False)
        if func is torch.Tensor.cpu:
            return self.moved(args[0], False, None, False)
        if func is torch.Tensor.get_device:
            return 0 if marked.has(args[0]) else -1
        if func is torch.Tensor.to:
            return self.to(args, kwargs)
        if func is torch.Tensor.type and len(args) > 1:
            text = args[1] if isinstance(args[1], str) else getattr(args[1], "__module__", "") + "." + getattr(args[1], "__name__", "")
            if "cuda." in text:
                return self.moved(args[0], True, getattr(torch, text.rsplit(".", 1)[1]).dtype, False)
        if func is torch.Tensor.type and len(args) == 1 and marked.has(args[0]):
            return func(*args).replace("torch.", "torch.cuda.")
        if func is torch.Tensor.type_as:
            return self.moved(args[0], marked.has(args[1]), args[1].dtype, False)
        if func is torch._C._nn._parse_to:
            return func(*args, **kwargs)
        if name in KEPT and any(marked.has(tensor) for tensor in tensors(args)):
            return recurrent(func, name, args)
        if func in (torch.Tensor.pin_memory,):
            return args[0]
        if func is torch.Tensor.numpy and marked.has(args[0]):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
        if kwargs.get("device") is not None:
            gpu = is_gpu(kwargs["device"])
            kwargs["device"] = "cpu" if gpu else kwargs["device"]
            kwargs.pop("pin_memory", None)
            if gpu and func in (torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy):
                kwargs.pop("device")
                grad = kwargs.pop("requires_grad", False)
                result = self.moved(func(*args, **kwargs), True, None, False)
                return result.requires_grad_() if grad else result
            if gpu and name not in ("autocast",):
                with on_gpu():
                    return func(*args, **kwargs)
            return func(*args, **kwargs)
        return func(*args, **kwargs)

    def to(self, args, kwargs):
        copy = kwargs.get("copy", False)
        tensor, rest = args[0], list(args[1:])
        if rest and isinstance(rest[0], torch.Tensor):
            return self.moved(tensor, marked.has(rest[0]), rest[0].dtype, copy)
        device = kwargs.get("device")
        if rest and (isinstance(rest[0], (str, torch.device)) or (isinstance(rest[0], int) and not isinstance(rest[0], bool))):
            device = rest.pop(0)
        dtype = kwargs.get("dtype") or next((word for word in rest if isinstance(word, torch.dtype)), None)
        where = marked.has(tensor) if device is None else is_gpu(device)
        if device is not None and torch.device("cuda" if isinstance(device, int) else device).type == "meta":
            return tensor.to("meta")
        return self.moved(tensor, where, dtype, copy, kwargs.get("memory_format"))

    def moved(self, tensor, gpu: bool, dtype, copy: bool, memory_format=None):
        is_there = marked.has(tensor) == gpu
        options = {} if memory_format is None else {"memory_format": memory_format}
        if is_there:
            return tensor.to(dtype or tensor.dtype, copy=copy, **options)
        if gpu:
            with on_gpu():
                return tensor.to(dtype or tensor.dtype, copy=True, **options)
        return ToHost.apply(tensor, dtype or tensor.dtype)


FURTHER_STEPS, VALIDATION_BATCHES = 3, 3


class Steps:
    """Ends the script when each optimizer has its steps and validation was seen, or when one waits too long."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.counts = wanted, weakref.WeakKeyDictionary()
        self.since = time.monotonic()
        self.given: set[int] = set()  # loaders since the last step
        self.training: set[int] = set()  # loaders that gave a batch for a step
        self.enough, self.further, self.deadline = False, 0, 0.0

    def made(self, optimizer) -> None:
        self.counts.setdefault(optimizer, 0)

    def stepped(self, optimizer, *_) -> None:
        count = self.counts[optimizer] = self.counts.get(optimizer, 0) + 1
        if count <= self.wanted:
            self.since = time.monotonic()
        self.training |= self.given
        self.given.clear()
        if self.enough:
            self.further += 1
            if self.further > FURTHER_STEPS * len(self.counts) or time.monotonic() > self.deadline:
                raise Done
            return
        busiest = max(self.counts.values())
        late = [other for other, steps in self.counts.items() if steps < self.wanted and on_a_gpu(other)]
        if busiest >= self.wanted and (not late or busiest >= 128 + self.wanted or time.monotonic() - self.since > 60):
            note(optimizers=list(self.counts))
            if not self.training:
                raise Done
            self.enough, self.deadline = True, time.monotonic() + 60

    def batches(self, loader, batches):
        """Those of a data loader. After the steps, the one that feeds training ends, so that validation comes; others end after a few."""
        after, count = self.enough, 0
        for batch in batches:
            if self.enough:
                if time.monotonic() > self.deadline or (after and id(loader) in self.training and torch.is_grad_enabled()):
                    raise Done
                count += 1
                if not after or count > VALIDATION_BATCHES:
                    return
            self.given.add(id(loader))
            yield batch


def on_a_gpu(optimizer) -> bool:
    return any(marked.has(parameter) for group in optimizer.param_groups for parameter in group["params"])


found: dict[str, object] = {}


def note(optimizers) -> None:
    """Parameters, gradients and optimizer state from the objects themselves."""
    sums = collections.Counter()
    seen: set[int] = set()

    def count(kind: str, tensor) -> None:
        if isinstance(tensor, torch.Tensor) and marked.has(tensor) and storage(tensor) not in seen:
            seen.add(storage(tensor))
            sums[kind] += tensor.untyped_storage().nbytes()

    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                count("parameters", parameter.data)
                count("gradients", parameter.grad)
        for state in optimizer.state.values():
            for tensor in tensors(state):
                count("state", tensor)
    found.update(sums, steps=[count for count in steps.counts.values()])


class Stream:
    """A stream or an event; classes, because annotations name them."""

    def __init__(self, *_, **__) -> None:
        self.device = torch.device("cuda", 0)

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def elapsed_time(self, _) -> float:
        return 1.0

    synchronize = wait = wait_stream = wait_event = record = record_event = lambda self, *_, **__: None  # noqa: E731


def pretend_cuda() -> None:
    properties = SimpleNamespace(name="NVIDIA A100-SXM4-40GB", major=8, minor=0, total_memory=TOTAL, multi_processor_count=108, gcnArchName="",
                                 max_threads_per_multi_processor=2048, warp_size=32, is_integrated=0, is_multi_gpu_board=0, uuid="GPU-0")
    nothing = lambda *_, **__: None  # noqa: E731
    stream = Stream()
    answers = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0, "get_device_name": lambda *_, **__: properties.name,
        "get_device_capability": lambda *_, **__: (8, 0), "get_device_properties": lambda *_, **__: properties, "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_, **__: True, "mem_get_info": lambda *_: (TOTAL - marked.live, TOTAL),
        "memory_allocated": lambda *_, **__: marked.live, "max_memory_allocated": lambda *_, **__: marked.peak, "memory_reserved": lambda *_, **__: marked.live,
        "max_memory_reserved": lambda *_, **__: marked.peak, "current_stream": lambda *_, **__: stream, "get_rng_state": torch.get_rng_state,
        "get_rng_state_all": lambda: [torch.get_rng_state()], "memory_stats": lambda *_, **__: collections.defaultdict(int),
        "device": lambda *_, **__: contextlib.nullcontext(), "stream": lambda *_, **__: contextlib.nullcontext(), "Stream": Stream, "Event": Stream,
        "get_arch_list": lambda: ["sm_80"],
    }
    for name in ("init", "_lazy_init", "_lazy_call", "set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "seed_all", "ipc_collect",
                 "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated", "set_per_process_memory_fraction"):
        answers[name] = nothing
    for name, answer in answers.items():
        for module in (torch.cuda, torch.cuda.memory, torch.cuda.random):
            if hasattr(module, name):
                setattr(module, name, answer)
    torch.version.cuda = torch.version.cuda or "12.4"
    for name in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        setattr(torch.cuda, f"{name}Tensor", type("CudaType", (type,), {"__call__": cuda_type(name)})(f"{name}Tensor", (), {"__module__": "torch.cuda"}))
    if hasattr(torch, "accelerator"):
        for name, answer in {"is_available": lambda: True, "device_count": lambda: 1, "current_accelerator": lambda *_, **__: torch.device("cuda"),
                             "current_device_index": lambda: 0, "synchronize": nothing, "current_stream": lambda *_, **__: stream, "set_stream": nothing,
                             "set_device_index": nothing, "device_index": lambda *_: contextlib.nullcontext()}.items():
            if hasattr(torch.accelerator, name):
                setattr(torch.accelerator, name, answer)


def cuda_type(name: str):
    def make(cls, *args):
        with unmarked():
            made = getattr(torch, f"{name}Tensor")(*args)
        return made.cuda()

    return make


def simplify() -> None:
    """Parts of training that need a GPU or processes, in their plain form."""
    loader = torch.utils.data.DataLoader.__init__

    def init(self, *args, **kwargs):
        kwargs.update({name: value for name, value in (("num_workers", 0), ("pin_memory", False), ("persistent_workers", False)) if name in kwargs})
        kwargs.pop("prefetch_factor", None)
        kwargs.pop("multiprocessing_context", None)
        loader(self, *args, **kwargs)

    torch.utils.data.DataLoader.__init__ = init
    iterate = torch.utils.data.DataLoader.__iter__
    torch.utils.data.DataLoader.__iter__ = lambda self: steps.batches(self, iterate(self))
    own_processes()
    one_process()
    with contextlib.suppress(ImportError):
        import triton.runtime

        for kernel in (triton.runtime.JITFunction, triton.runtime.Autotuner, triton.runtime.autotuner.Heuristics):
            kernel.run = lambda *_, **__: None  # the tensors that it works on are made by its callers
    with contextlib.suppress(ImportError):
        from torch.utils.tensorboard import SummaryWriter

        SummaryWriter.add_graph = lambda *_, **__: None
    torch.nn.RNNBase.flatten_parameters = lambda self: None
    functions = torch.nn.functional
    plain_dropout, attention = functions.dropout, functions.scaled_dot_product_attention

    def dropout(input, p=0.5, training=True, inplace=False):
        """As CUDA does: the mask is of one byte an element."""
        fused = training and 0 < p < 1 and marked.has(input) and not inplace
        return torch.native_dropout(input, p, True)[0] if fused else plain_dropout(input, p, training, inplace)

    functions.dropout = dropout
    # with dropout the CPU has no fused attention, which CUDA has
    functions.scaled_dot_product_attention = lambda q, k, v, attn_mask=None, dropout_p=0.0, *rest, **named: attention(q, k, v, attn_mask, 0.0, *rest, **named)
    torch.jit.trace = lambda function, *_, **__: function
    torch.multiprocessing.spawn = lambda fn, args=(), *_, **__: fn(0, *args)
    torch.compile = lambda model=None, *_, **__: (lambda function: function) if model is None else model
    autocast = torch.autocast.__init__

    def cpu_autocast(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None, **kwargs):
        dtype = dtype or (torch.float16 if device_type == "cuda" else None)
        autocast(self, "cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    torch.autocast.__init__ = cpu_autocast
    enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype
    torch.is_autocast_enabled = lambda device_type="cuda": enabled("cpu")
    torch.get_autocast_dtype = lambda device_type="cuda": dtype_of("cpu")
    scaler = torch.amp.GradScaler.__init__
    torch.amp.GradScaler.__init__ = lambda self, device="cuda", *_, **__: scaler(self, "cpu", enabled=False)
    choose = OPTIMIZER._default_to_fused_or_foreach

    def as_on_gpu(params, differentiable, use_fused=False):
        return (False, not differentiable) if any(marked.has(p) for p in params if isinstance(p, torch.Tensor)) else choose(params, differentiable, use_fused)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch.optim.") and hasattr(module, "_default_to_fused_or_foreach"):
            module._default_to_fused_or_foreach = as_on_gpu


class Replicated(torch.nn.Module):
    """A model whose gradients are also in the buckets that ranks exchange."""

    def __init__(self, module, *_, **__) -> None:
        super().__init__()
        self.module = module
        with on_gpu():
            self.buckets = [torch.empty_like(parameter) for parameter in module.parameters() if parameter.requires_grad and marked.has(parameter)]

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    no_sync = lambda self: contextlib.nullcontext()  # noqa: E731


def own_processes() -> None:
    """What the script starts runs at once, in this process; pools of data sets are left alone."""
    process = multiprocessing.process.BaseProcess
    start, join = process.start, process.join

    def started(self) -> None:
        self.runs_here = getattr(self._target, "__module__", "") != "multiprocessing.pool"
        self.run() if self.runs_here else start(self)

    process.start = started
    process.join = lambda self, timeout=None: None if self.runs_here else join(self, timeout)


def one_process() -> None:
    """A group of one, without NCCL."""
    group = torch.distributed
    begin = group.init_process_group
    group.init_process_group = lambda *_, **__: None if group.is_initialized() else begin("gloo", store=group.HashStore(), rank=0, world_size=1)
    torch.nn.parallel.DistributedDataParallel = sys.modules["torch.nn.parallel.distributed"].DistributedDataParallel = Replicated


steps = Steps(3)


def main() -> int:
    report, wanted, seconds, _, *command = sys.argv[1:]
    steps.wanted = int(wanted)
    with contextlib.suppress(Exception):  # PyTorch looks through torch.cuda when this is first used: let it see the real one
        torch._dynamo.trace_rules.get_torch_obj_rule_map()
    pretend_cuda()
    simplify()
    initialise = torch.optim.Optimizer.__init__

    def init(self, *args, **kwargs):
        initialise(self, *args, **kwargs)
        steps.made(self)

    torch.optim.Optimizer.__init__ = init
    OPTIMIZER.register_optimizer_step_post_hook(steps.stepped)
    threading.Timer(float(seconds), lambda: (write(report, "out of time"), os._exit(4))).start()
    began, outcome = time.monotonic(), "ended without enough steps"
    sys.argv = command
    try:
        with Follow(), Pretend():
            if command[0] == "-m":
                sys.argv = command[1:]
                sys.path.insert(0, os.getcwd())
                runpy.run_module(command[1], run_name="__main__", alter_sys=True)
            else:
                sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
                runpy.run_path(command[0], run_name="__main__")
    except Done:
        outcome = "done"
    except SystemExit as error:
        outcome = f"SystemExit: {error.code}"
    except BaseException as error:
        import traceback

        traceback.print_exc()
        outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if steps.enough:  # what goes wrong after training is no failure
        found["after_training"], outcome = outcome, "done"
    if outcome != "done" and any(steps.counts.values()):
        note(list(steps.counts))
        outcome = "done" if outcome in ("ended without enough steps", "SystemExit: 0") else outcome
    found["seconds"] = round(time.monotonic() - began, 1)
    write(report, outcome)
    os._exit(0)


def write(report: str, outcome: str) -> None:
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"outcome": outcome, "peak": marked.peak, **found}, file)


if __name__ == "__main__":
    main()
