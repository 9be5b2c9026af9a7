"""What a model is made of: its leaf modules and functional operators in the order in which they ran, and what reads what."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch.overrides import TorchFunctionMode

from . import recipes
from .convolutions import dtype_name
from .layer_facts import facts_of_function, facts_of_module
from .model_file import Layer, ModelDescription
from .outputs import all_tensors
from .quiet import unseen
from .session import Session
from .stand_ins import weights_on_gpu

SILENT = {"__get__", "__set__", "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "requires_grad_", "_set_grad_enabled"}


class Recorder(TorchFunctionMode):
    """Makes a layer of each leaf module and of each function that is called outside of one."""

    def __init__(self, session: Session, model: torch.nn.Module, description: ModelDescription) -> None:
        super().__init__()
        self.session = session
        self.description = description
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._producer: dict[int, str] = {}
        self._alive: list[Any] = []  # identities of tensors are their addresses, so none may go while they count
        self._calls: dict[str, int] = {}
        self._parameter_user: dict[int, str] = {}
        self._stack: list[torch.nn.Module] = []
        self._leaf_depth = 0

    def watch(self) -> Callable[[], None]:
        before = torch.nn.modules.module.register_module_forward_pre_hook(self._module_begins)
        after = torch.nn.modules.module.register_module_forward_hook(self._module_ends)

        def stop() -> None:
            before.remove()
            after.remove()

        return stop

    def name_inputs(self, inputs: Any) -> None:
        for number, tensor in enumerate(all_tensors(inputs), 1):
            self._produced(tensor, "input" if number == 1 else f"input{number}")

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._leaf_depth:
            return result
        name = getattr(func, "__name__", "")
        if name in SILENT or not name:
            return result
        with unseen():
            outputs = list(all_tensors(result))
            if outputs:
                self._function_ran(name, args, kwargs, outputs)
        return result

    # -- modules

    def _module_begins(self, module: torch.nn.Module, inputs: Any) -> None:
        self._stack.append(module)
        if self._leaf_depth or is_leaf(module):
            self._leaf_depth += 1

    def _module_ends(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        self._stack.pop()
        if not self._leaf_depth:
            return
        self._leaf_depth -= 1
        if self._leaf_depth:
            return
        with unseen():
            outputs = list(all_tensors(output))
            if not outputs:
                return
            path = self._paths.get(id(module)) or type(module).__name__
            facts = facts_of_module(module)
            operands = list(all_tensors(inputs))
            self._add(path, nn_class(module), operands, list(module.parameters()), outputs, facts, path.rpartition(".")[0])

    # -- functions

    def _function_ran(self, name: str, args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> None:
        kind = name.strip("_")
        kind = kind[1:] if name.startswith("__r") and kind[1:] in ("add", "mul", "sub", "truediv", "matmul", "pow") else kind
        if name.startswith("__i") and kind[1:] in ("add", "mul", "sub", "truediv"):
            kind = kind[1:]
        operands = list(all_tensors((args, kwargs)))
        if all(any(output is operand for operand in operands) for output in outputs) and not self._writes(name):
            return  # nothing happened: a `.to` of what is there already, or a `.contiguous` of what is contiguous
        parameters = [operand for operand in operands if isinstance(operand, torch.nn.Parameter)]
        enclosing = self._paths.get(id(self._stack[-1]), "") if self._stack else ""
        facts = facts_of_function(kind, args, kwargs)
        if self._writes(name) and operands and outputs[0] is operands[0]:
            facts["in_place"] = True
        self._add(f"{enclosing}.{kind}" if enclosing else kind, kind, operands, parameters, outputs, facts, enclosing)

    @staticmethod
    def _writes(name: str) -> bool:
        return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")

    # -- layers

    def _add(
        self, path: str, kind: str, operands: list[torch.Tensor], parameters: list[torch.nn.Parameter],
        outputs: list[torch.Tensor], facts: dict[str, Any], enclosing: str,
    ) -> None:
        count = self._calls[path] = self._calls.get(path, 0) + 1
        name = path if count == 1 else f"{path}#{count}"
        inputs: list[str] = []
        for operand in operands:
            producer = self._producer.get(id(operand))
            if producer is not None and producer not in inputs:
                inputs.append(producer)
        own, shared = self._own_parameters(parameters, name)
        facts = dict(facts)
        if shared:
            facts["shares"] = shared
        first = outputs[0]
        if operands and not facts.get("in_place"):
            if first is operands[0]:
                facts["in_place" if kind not in ("Identity", "Dropout") else "view"] = True
            elif self._same_storage(first, operands[0]):
                facts["view"] = True
        dtype = dtype_name(first.dtype)
        if dtype != self.description.precision:
            facts["dtype"] = dtype
        previous = self.description.layers[-1].name if self.description.layers else "input"
        layer = Layer(name, kind, [int(size) for size in first.shape], None if inputs == [previous] else inputs, own, facts, enclosing)
        self.description.layers.append(layer)
        for output in outputs:
            self._produced(output, name)

    def _produced(self, tensor: torch.Tensor, name: str) -> None:
        self._producer[id(tensor)] = name
        self._alive.append(tensor)

    def _own_parameters(self, parameters: list[torch.nn.Parameter], name: str) -> tuple[int, Optional[str]]:
        own, shared = 0, None
        for parameter in parameters:
            user = self._parameter_user.setdefault(id(parameter), name)
            if user == name:
                own += parameter.numel() if parameter.requires_grad else 0
            else:
                shared = shared or user
        return own, shared

    def _same_storage(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        record = self.session.storages.find(one)
        return record is not None and record is self.session.storages.find(other)


def is_leaf(module: torch.nn.Module) -> bool:
    """A module of `torch.nn` without modules inside; other modules are seen through, down to the functions they call."""
    return next(module.children(), None) is None and nn_class(module) != "Module"


def nn_class(module: torch.nn.Module) -> str:
    """The class of `torch.nn` that a module is of."""
    for cls in type(module).__mro__:
        if cls.__module__.startswith("torch.nn.") and not cls.__name__.startswith("_"):
            return cls.__name__
    return "Module"


def describe(model: torch.nn.Module, *inputs: Any, name: str = "", **named_inputs: Any) -> str:
    """The description of a model, from one forward pass without a GPU. The model and the inputs are left as they are."""
    tensors = list(all_tensors((inputs, named_inputs)))
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    precision = dtype_name(parameter.dtype) if parameter is not None else "float32"
    description = ModelDescription(name or type(model).__name__, int(tensors[0].shape[0]) if tensors else 1, precision)
    session = Session(stop=False)
    with session, weights_on_gpu(session, model):
        _record(session, model, description, inputs, named_inputs)
    return description.to_toml()


def _record(session: Session, model: torch.nn.Module, description: ModelDescription, inputs: Any, named_inputs: Any) -> None:
    recorder = Recorder(session, model, description)
    inputs, named_inputs = recipes.to_gpu(tuple(inputs)), recipes.to_gpu(dict(named_inputs))
    recorder.name_inputs((inputs, named_inputs))
    stop = recorder.watch()
    try:
        with recorder:
            model(*inputs, **named_inputs)
    finally:
        stop()


def describe_workload(session: Session, workload: recipes.Workload) -> str:
    model = workload.model.cuda().train()
    description = ModelDescription(workload.name, workload.batch_size, workload.precision)
    operands, _ = workload.batch()
    named = operands if isinstance(operands, dict) else {}
    _record(session, model, description, () if named else operands, named)
    return description.to_toml()


def describe_recipe(recipe: dict[str, Any]) -> str:
    with Session(stop=False) as session:
        workload = recipes.build(recipe)
        return workload.description or describe_workload(session, workload)
