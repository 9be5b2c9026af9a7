"""Patches of PyTorch that tell the tracer what a script does: parameters made, modules moved, backward, optimizer steps."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.overrides

from . import constants
from .events import BUFFER, WEIGHT
from .import_hooks import ImportHooks
from .patches import Patches
from .quiet import unseen
from .storages import HOST

if TYPE_CHECKING:
    from .session import Session

SHOWN_ELEMENTS = 1000


def install(session: "Session", patches: Patches) -> None:
    _parameters(session, patches)
    _moves(session, patches)
    _backward(session, patches)
    _optimizers(session, patches)
    _python_functions(patches)
    _defaults(session, patches)
    _mixed_precision(session, patches)
    _printing(session, patches)
    _saved_tensors(session, patches)
    _methods(session, patches)
    _fake_tensors(session, patches)
    _distributions(session)
    handle = torch.nn.modules.module.register_module_forward_pre_hook(_module_called(session))
    session.closers.append(handle.remove)


def _module_called(session: "Session") -> Any:
    seen: set[int] = set()

    def called(module: torch.nn.Module, inputs: Any) -> None:
        if session.phases.module_called():
            session.inputs.forward_begins(module, inputs)
        if id(module) not in seen:
            seen.add(id(module))
            _note_weights(session, module)
        session.weights.module_called(module, inputs)
        session.cross_check.module_called(module)

    return called


def _note_weights(session: "Session", module: torch.nn.Module) -> None:
    """Parameters of classes of their own (quantised ones) are made past `Parameter.__new__`."""
    with unseen():
        for parameter in module._parameters.values():
            if parameter is not None and parameter.is_meta:
                session.storages.reclassify(parameter, WEIGHT)


def _parameters(session: "Session", patches: Patches) -> None:
    """Parameters are on `meta` from the start: they cost no memory here, and `.cuda()` then keeps their identity as CUDA does."""
    make = torch.nn.Parameter.__new__

    def new(cls, data=None, *args, **kwargs):
        if data is not None and isinstance(data, torch.Tensor):
            with unseen():
                if not data.is_meta and data.layout == torch.strided and type(data) in (torch.Tensor, torch.nn.Parameter):
                    index = session.view.default_type_device
                    data = session.in_host_memory(data) if index is None else session.view.move(data, index, None)
                else:
                    session.storages.reclassify(data, WEIGHT)
        return make(cls, data, *args, **kwargs)

    patches.set(torch.nn.Parameter, "__new__", staticmethod(new))


def _moves(session: "Session", patches: Patches) -> None:
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def moving(module, function, *args, **kwargs):
        before = session.memory.moved
        session.memory.moved = BUFFER
        try:
            return apply(module, function, *args, **kwargs)
        finally:
            session.memory.moved = before

    patches.set(torch.nn.Module, "_apply", moving)


def _backward(session: "Session", patches: Patches) -> None:
    def wrapped(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            session.phases.backward_begins()
            try:
                return function(*args, **kwargs)
            finally:
                session.phases.backward_ends()

        return run

    patches.set(torch.autograd, "backward", wrapped(torch.autograd.backward))
    patches.set(torch.autograd, "grad", wrapped(torch.autograd.grad))


def _optimizers(session: "Session", patches: Patches) -> None:
    initialise = torch.optim.Optimizer.__init__
    wrapped_classes: set[type] = set()

    def wrap(cls: type) -> None:
        step = cls.step

        @functools.wraps(step)
        def run(self, *args, **kwargs):
            session.note_gradients(self)
            session.phases.step_begins(self)
            try:
                result = step(self, *args, **kwargs)
            except BaseException:
                session.phases.step_abandoned()
                raise
            session.phases.step_ends(lambda: session.note_optimizer_state(self))
            return result

        patches.set(cls, "step", run)

    @functools.wraps(initialise)
    def new_init(self, *args, **kwargs):
        initialise(self, *args, **kwargs)
        cls = type(self)
        if cls not in wrapped_classes:
            wrapped_classes.add(cls)
            wrap(cls)
        session.trace.facts.setdefault("optimizer", cls.__name__)
        session.steps.constructed(self)

    patches.set(torch.optim.Optimizer, "__init__", new_init)


def _python_functions(patches: Patches) -> None:
    """Functions written in Python run as they are, so that each built-in function that they call is seen by itself."""

    disabled = torch._C._disabled_torch_function_impl

    def only_subclasses(*values: Any) -> bool:
        return any(
            type(value) not in (torch.Tensor, torch.nn.Parameter)
            and getattr(type(value), "__torch_function__", disabled) is not disabled
            and isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)
            for value in values
        )

    def of_tuple(values: Any) -> bool:
        return only_subclasses(*values)

    for module in (torch.nn.functional, torch.functional, torch._tensor, torch.autograd):
        patches.set_where_present(module, "has_torch_function", of_tuple)
        patches.set_where_present(module, "has_torch_function_unary", only_subclasses)
        patches.set_where_present(module, "has_torch_function_variadic", only_subclasses)


def _defaults(session: "Session", patches: Patches) -> None:
    view = session.view

    def set_default_device(device: Any) -> None:
        view.default_device = view.gpu_index(device)

    patches.set_where_present(torch, "set_default_device", set_default_device)
    set_type = torch.set_default_tensor_type

    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        if ".cuda." in name:
            view.default_device = view.default_type_device = session.memory.current_device
            torch.set_default_dtype(getattr(torch, name.rsplit(".", 1)[1]).dtype)
        else:
            view.default_device = view.default_type_device = None
            set_type(kind)

    patches.set(torch, "set_default_tensor_type", set_default_tensor_type)


def _mixed_precision(session: "Session", patches: Patches) -> None:
    clear = torch.clear_autocast_cache

    def clear_cache() -> None:
        session.view.autocast.forget()
        clear()

    patches.set(torch, "clear_autocast_cache", clear_cache)
    scaler = torch.cuda.amp.GradScaler

    def always_step(self, optimizer, optimizer_state, *args, **kwargs):
        return optimizer.step(*args, **kwargs)

    for owner in {cls for cls in scaler.__mro__ if "_maybe_opt_step" in vars(cls)}:
        patches.set(owner, "_maybe_opt_step", always_step)


def _printing(session: "Session", patches: Patches) -> None:
    show = torch._tensor_str._str

    def shown(tensor: torch.Tensor, **kwargs: Any) -> str:
        with unseen():
            device = session.storages.device(tensor)
            if device is None:
                return show(tensor, **kwargs)
            place = "" if device == HOST else f", device='cuda:{device}'"
            if tensor.numel() > SHOWN_ELEMENTS:
                return f"tensor(..., size={tuple(tensor.shape)}, dtype={tensor.dtype}{place})"
            return show(constants.to_host(session.storages, tensor.detach()))[:-1] + place + ")"

    patches.set(torch._tensor_str, "_str", shown)


def _saved_tensors(session: "Session", patches: Patches) -> None:
    """Hooks on saved tensors (gradient checkpointing) are called from within operators, where the script's view is off."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    initialise = hooks.__init__

    def in_view(hook: Any) -> Any:
        def run(value: Any) -> Any:
            if session.view in torch.overrides._get_current_function_mode_stack():
                return hook(value)
            with session.view:
                return hook(value)

        return run

    def init(self, pack_hook, unpack_hook, *args, **kwargs):
        initialise(self, in_view(pack_hook), in_view(unpack_hook), *args, **kwargs)

    patches.set(hooks, "__init__", init)


def _fake_tensors(session: "Session", patches: Patches) -> None:
    """PyTorch works out shapes of sharded tensors on fake ones, which take no memory."""
    hooks = ImportHooks()
    hooks.install(patches)
    hooks.when_imported("torch._subclasses.fake_tensor", lambda module: _pausing(session, patches, module))


def _pausing(session: "Session", patches: Patches, module: Any) -> None:
    enter, leave = module.FakeTensorMode.__enter__, module.FakeTensorMode.__exit__

    def entered(self):
        result = enter(self)
        session.memory.paused += 1
        return result

    def left(self, *error):
        session.memory.paused -= 1
        return leave(self, *error)

    patches.set(module.FakeTensorMode, "__enter__", entered)
    patches.set(module.FakeTensorMode, "__exit__", left)


def _distributions(session: "Session") -> None:
    """Arguments of distributions are checked by their values, which are not known. A script's own `validate_args=True` stays."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    session.closers.append(lambda: torch.distributions.Distribution.set_default_validate_args(before))


def _methods(session: "Session", patches: Patches) -> None:
    """Methods that must be replaced on the class: their arguments, or what they do with storages, never reach a function mode."""
    copy = torch.Tensor.__deepcopy__

    def deepcopy(self, memo):
        with unseen():
            device = session.storages.device(self)
            if (device is None and type(self) is torch.Tensor) or id(self) in memo:
                return copy(self, memo)  # PyTorch 1.13 cannot copy a storage that a function mode has seen
        if device is None:
            return copy(self, memo)
        twin = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = twin
        return twin

    patches.set(torch.Tensor, "__deepcopy__", deepcopy)
    resize = torch.UntypedStorage.resize_

    def resized(self, size):
        result = resize(self, size)
        session.storages.resized(self)
        return result

    patches.set(torch.UntypedStorage, "resize_", resized)
    patches.set(torch.Tensor, "record_stream", lambda self, stream: None)
    share = torch.Tensor.share_memory_

    def share_memory(self):
        with unseen():
            return self if session.storages.device(self) is not None else share(self)  # tensors on a GPU are shared by themselves

    patches.set(torch.Tensor, "share_memory_", share_memory)
    patches.set(torch.nn.RNNBase, "flatten_parameters", lambda self: None)

    class Generator(torch._C.Generator):
        """Random numbers of a GPU are drawn by one of the host."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return torch._C.Generator("cpu")

    patches.set(torch, "Generator", Generator)
