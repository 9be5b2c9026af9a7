"""A dry run leaves no traces: no files outside the scratch folder, no connections, no experiment trackers."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import socket
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Optional

import torch

from . import c_openers, overlay_functions, saving, triton_kernels
from .import_hooks import ImportHooks
from .overlay import Overlay
from .patches import Patches

if TYPE_CHECKING:
    from .session import Session

TRACKERS = ("wandb", "mlflow", "neptune", "comet_ml", "clearml", "aim", "swanlab")

ENVIRONMENT = {
    "WANDB_MODE": "disabled",
    "WANDB_DISABLED": "true",
    "WANDB_SILENT": "true",
    "COMET_MODE": "DISABLED",
    "NEPTUNE_MODE": "debug",
    "DISABLE_MLFLOW_INTEGRATION": "TRUE",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_DEACTIVATE_ASYNC_LOAD": "1",  # modes of PyTorch do not reach into other threads
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def install(session: "Session", patches: Patches, hooks: ImportHooks, scratch: str, network: bool) -> Overlay:
    for name, value in {**ENVIRONMENT, **({} if network else OFFLINE)}.items():
        os.environ[name] = value
    finder = TrackerFinder()
    sys.meta_path.insert(0, finder)
    if not network:
        _no_connections(patches)
    _no_compiled_models(patches)
    overlay = Overlay(scratch)
    overlay_functions.install(overlay, patches)
    session.to_read = overlay.to_read
    hooks.when_imported("torch.utils.tensorboard.writer", lambda module: patches.set(module.SummaryWriter, "add_graph", lambda *_, **__: None))
    hooks.when_imported("safetensors", lambda module: saving.install_safe_open(session, patches, module))
    hooks.when_imported("safetensors.torch", lambda module: saving.install_safetensors(session, patches, module))
    triton_kernels.install(session, patches, hooks)
    c_openers.install(overlay, patches, hooks)
    return overlay


class Silence(ModuleType):
    """Takes any call, attribute or item, and answers with itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__",):
            raise AttributeError(name)
        return "0" if name == "__version__" else self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # a decorator such as @mlflow.trace must give back the function
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], Silence) else self

    def __enter__(self) -> "Silence":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __getitem__(self, _: Any) -> "Silence":
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "muted"


class TrackerFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces experiment trackers that are installed; those that are not stay missing, as the script may ask."""

    def __init__(self) -> None:
        self._installed = {name for name in TRACKERS if importlib.util.find_spec(name) is not None}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name.partition(".")[0] in self._installed:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Silence(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def _no_connections(patches: Patches) -> None:
    def is_local(address: Any) -> bool:
        host = address[0] if isinstance(address, tuple) and address else address
        return not isinstance(address, tuple) or host in ("localhost", "::1", "", "0.0.0.0") or str(host).startswith("127.")

    def refusing(method: Any) -> Any:
        def connect(self, address, *args):
            if self.family == socket.AF_UNIX or is_local(address):
                return method(self, address, *args)
            raise ConnectionRefusedError(f"no connections in a dry run (to {address[0]}): use --network to allow them")

        return connect

    class DrySocket(socket.socket):
        connect = refusing(socket.socket.connect)
        connect_ex = refusing(socket.socket.connect_ex)

    resolve = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        if host is None or is_local((host,)) or str(host).replace(".", "").isdigit():
            return resolve(host, *args, **kwargs)
        raise socket.gaierror(socket.EAI_AGAIN, f"no connections in a dry run (to {host}): use --network to allow them")

    patches.set(socket, "socket", DrySocket)
    patches.set(socket, "getaddrinfo", getaddrinfo)


MARK = b"a dry run saves no compiled models\n"


def _no_compiled_models(patches: Patches) -> None:
    """A compiled model needs the values of its tensors; a file with a mark takes its place in the scratch folder."""

    def save(model: Any, f: Any, *_: Any, **__: Any) -> None:
        if hasattr(f, "write"):
            f.write(MARK)
        else:
            with open(f, "wb") as file:
                file.write(MARK)

    patches.set_where_present(torch.jit, "save", save)
    patches.set(torch.jit, "trace", lambda function, *_, **__: function)  # a traced model needs the memory of the model as it was written
