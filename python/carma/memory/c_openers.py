"""Libraries that open files from C by a path: they get the path in the scratch folder where the script has written one."""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Callable

from .import_hooks import ImportHooks
from .overlay import Overlay
from .patches import Patches

READ, WRITE, WRITE_SECOND, CHANGE = "read", "write", "write second", "change"

FUNCTIONS: dict[str, dict[str, str]] = {
    "sqlite3": {"connect": CHANGE},
    "sqlite3.dbapi2": {"connect": CHANGE},
    "pyarrow": {
        "memory_map": READ, "create_memory_map": WRITE, "input_stream": READ, "output_stream": WRITE, "OSFile": READ,
        "MemoryMappedFile": READ,
    },
    "pyarrow.parquet": {"read_table": READ, "read_schema": READ, "read_metadata": READ, "ParquetFile": READ, "write_table": WRITE_SECOND,
                        "ParquetWriter": WRITE},
    "pyarrow.csv": {"read_csv": READ, "open_csv": READ, "write_csv": WRITE_SECOND},
    "pyarrow.json": {"read_json": READ},
    "pyarrow.feather": {"read_table": READ, "read_feather": READ},
    "pyarrow.dataset": {"dataset": READ},
    "h5py": {"File": READ},
    "h5py._hl.files": {"File": READ},
    "cv2": {"imread": READ, "imwrite": WRITE, "VideoCapture": READ, "VideoWriter": WRITE},
    "soundfile": {"SoundFile": READ},
    "lmdb": {"open": READ, "Environment": READ},
    "sentencepiece": {},
    "torchvision.io.image": {"read_file": READ, "write_file": WRITE},
}
"""Functions and classes whose first argument is a path. Where a mode is given, it decides between reading and writing.
`WRITE_SECOND`: the path is the second argument."""

PATH_WORDS = ("path", "source", "filename", "file", "name", "database", "where", "sink")


def install(overlay: Overlay, patches: Patches, hooks: ImportHooks) -> None:
    for name, functions in FUNCTIONS.items():
        hooks.when_imported(name, functools.partial(_change, overlay, patches, functions))
    hooks.when_imported("tokenizers", functools.partial(_tokenizers, overlay, patches))
    hooks.when_imported("sentencepiece", functools.partial(_sentencepiece, overlay, patches))


def _change(overlay: Overlay, patches: Patches, functions: dict[str, str], module: ModuleType) -> None:
    for name, access in functions.items():
        real = getattr(module, name, None)
        if real is not None and not getattr(real, "_follows_overlay", False):
            patches.set(module, name, _class(overlay, real, access) if isinstance(real, type) else _function(overlay, real, access))


def _leading(overlay: Overlay, access: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments with the path replaced."""
    mode = kwargs.get("mode", args[1] if len(args) > 1 else "")
    if isinstance(mode, str) and mode and access == READ and set(mode) & set("wax+"):
        access = CHANGE if set(mode) & set("a+") else WRITE
    translate = {READ: overlay.to_read, WRITE: overlay.to_write, WRITE_SECOND: overlay.to_write, CHANGE: overlay.to_change}[access]
    position = 1 if access == WRITE_SECOND else 0

    def led(value: Any) -> Any:
        if not isinstance(value, (str, bytes, os.PathLike)) or str(value).startswith(":memory:") or "://" in str(value):
            return value
        place = translate(value)
        return os.fspath(place) if place is not value else value

    if len(args) > position:
        return (*args[:position], led(args[position]), *args[position + 1:]), kwargs
    return args, {name: led(value) if name in PATH_WORDS else value for name, value in kwargs.items()}


def _function(overlay: Overlay, real: Callable[..., Any], access: str) -> Callable[..., Any]:
    @functools.wraps(real)
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _leading(overlay, access, args, kwargs)
        return real(*args, **kwargs)

    run._follows_overlay = True  # type: ignore[attr-defined]
    return run


class _SameInstances(type):
    """`isinstance` with the class that takes another's place."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls._real)  # type: ignore[attr-defined]

    def __getattr__(cls, name: str) -> Any:
        if name == "_real":
            raise AttributeError(name)
        return getattr(cls._real, name)


def _class(overlay: Overlay, real: type, access: str) -> type:
    """Calling it makes an instance of the real class."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _leading(overlay, access, args, kwargs)
        return real(*args, **kwargs)

    names = {"__new__": new, "_real": real, "_follows_overlay": True, "__module__": real.__module__, "__doc__": real.__doc__}
    return _SameInstances(real.__name__, (), names)


def _set_methods(overlay: Overlay, patches: Patches, owner: Any, methods: dict[str, str]) -> None:
    """Methods of a class in C, whose second argument (after `self`) is a path. Classes that cannot be changed are left as they are."""
    for name, access in methods.items():
        real = getattr(owner, name, None)
        if real is None:
            continue

        def run(self: Any, *args: Any, _real: Any = real, _access: str = access, **kwargs: Any) -> Any:
            args, kwargs = _leading(overlay, _access, args, kwargs)
            return _real(self, *args, **kwargs)

        try:
            patches.set(owner, name, run)
        except TypeError:
            return


def _tokenizers(overlay: Overlay, patches: Patches, module: ModuleType) -> None:
    _set_methods(overlay, patches, module.Tokenizer, {"save": WRITE})
    from_file = module.Tokenizer.from_file

    def read(path: Any) -> Any:
        return from_file(os.fspath(overlay.to_read(path)))

    try:
        patches.set(module.Tokenizer, "from_file", staticmethod(read))
    except TypeError:
        return


def _sentencepiece(overlay: Overlay, patches: Patches, module: ModuleType) -> None:
    _set_methods(overlay, patches, module.SentencePieceProcessor, {"LoadFromFile": READ})
