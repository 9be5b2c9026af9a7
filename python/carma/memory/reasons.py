"""Why a script cannot be dry-run, in one sentence that says what to do."""

from __future__ import annotations

import ast
import os
import socket
from typing import Iterator, Optional

OTHER_FRAMEWORKS = {
    "jax": "JAX", "flax": "JAX", "optax": "JAX", "tensorflow": "TensorFlow", "keras": "Keras", "paddle": "PaddlePaddle", "mxnet": "MXNet",
    "mindspore": "MindSpore", "chainer": "Chainer",
}
OFFLINE_WORDS = (
    "offline mode", "outgoing traffic has been disabled", "couldn't connect to", "no connections in a dry run",
    "Temporary failure in name resolution", "Max retries exceeded", "Connection refused", "Network is unreachable",
    "Name or service not known", "Connection error", "cannot find the requested files in the local cache", "LocalEntryNotFoundError",
    "OfflineModeIsEnabled", "is not a local folder and is not a valid",
)
NO_WEIGHTS = (
    "the model ran on a GPU but has no weights on a GPU, so the estimate would be too low: "
    "move the model with model.to(\"cuda\") before training"
)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it was raised from."""
    seen: set[int] = set()
    current: Optional[BaseException] = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _raised_from(error: BaseException) -> Iterator[BaseException]:
    """As `causes`, of those that were named by `raise ... from`."""
    current: Optional[BaseException] = error
    for _ in range(10):
        if current is None:
            return
        yield current
        current = current.__cause__


def reason_of(error: BaseException) -> str:
    chain = list(causes(error))
    network = next((cause for cause in chain if _is_network(cause)), None)
    if network is not None and not isinstance(error, ModuleNotFoundError):
        return (f"the script needs the network, which a dry run leaves out ({_short(network)}): "
                "use --network to allow it, or fetch what it downloads before")
    absent = next((cause for cause in _raised_from(error) if isinstance(cause, ModuleNotFoundError) and cause.name), None)
    if absent is not None:
        module = absent.name.partition(".")[0]
        framework = OTHER_FRAMEWORKS.get(module)
        if framework:
            return f"the script needs {framework}: only PyTorch scripts can be dry-run"
        return (f"the script needs the module {absent.name!r}, which this interpreter does not have: "
                "install it, or name another one with --python")
    missing = next((cause for cause in chain if isinstance(cause, FileNotFoundError) and cause.filename is not None), None)
    if missing is not None:
        path = missing.filename if isinstance(missing.filename, str) else os.fsdecode(missing.filename)
        return f"the script needs {_absolute(path)}, which does not exist: give it the data, or a small part of it"
    return _plain(error)


def _absolute(path: str) -> str:
    marker = f"{os.sep}files{os.sep}"
    place = path.partition(marker)  # a write into a folder that does not exist is told by its own path
    path = os.sep + place[2] if "carma-" in place[0] and place[2] else path
    return os.path.normpath(os.path.join(os.getcwd(), path))


def _plain(error: BaseException) -> str:
    text = _short(error)
    if isinstance(error, SystemExit):
        told = error.code if isinstance(error.code, str) else f"exit code {error.code}"
        return f"the script ended itself ({told}) before a training iteration was complete"
    if isinstance(error, NotImplementedError) and "meta" in str(error).lower():
        return f"an operator cannot be run without its values: {text}"
    if isinstance(error, MemoryError):
        return "the script needs more host memory than there is"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    cause = list(_raised_from(error))[-1]
    origin = "" if cause is error else f" (from {type(cause).__name__}: {_short(cause)})"
    return f"{type(error).__name__}: {text}{origin}" if text or origin else type(error).__name__


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text.split(". ")[0][:600] if len(text) > 300 else text


def _is_network(error: BaseException) -> bool:
    if isinstance(error, (socket.gaierror, ConnectionRefusedError)) and not isinstance(error, FileNotFoundError):
        return True
    text = f"{type(error).__name__}: {error}"
    return any(word.lower() in text.lower() for word in OFFLINE_WORDS)


def other_framework(script: str) -> Optional[str]:
    """The framework that a script uses in PyTorch's place, told by its imports."""
    try:
        with open(script, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    if names & {"torch", "lightning", "pytorch_lightning", "accelerate", "timm", "torchvision"}:
        return None
    return next((OTHER_FRAMEWORKS[name] for name in sorted(names) if name in OTHER_FRAMEWORKS), None)
