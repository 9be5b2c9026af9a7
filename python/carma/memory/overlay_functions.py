"""Python's file functions (`open`, `os`, `shutil`, and with them pathlib, glob, tempfile, numpy, PIL, logging) on the overlay."""

from __future__ import annotations

import builtins
import functools
import io
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Any, Callable

from .overlay import REAL, Entries, Entry, Overlay, exists
from .patches import Patches

_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def install(overlay: Overlay, patches: Patches) -> None:
    opener = _opener(overlay, io.open)
    patches.set(builtins, "open", opener)
    patches.set(io, "open", opener)
    for module, name in (("tarfile", "bltn_open"), ("bz2", "_builtin_open"), ("tokenize", "_builtin_open")):  # they keep one of their own
        if module in sys.modules:
            patches.set_where_present(sys.modules[module], name, opener)
    functions: dict[str, Callable[..., Any]] = {
        "open": _os_open(overlay), "listdir": _listdir(overlay), "scandir": _scandir(overlay), "access": _access(overlay),
        "mkdir": _mkdir(overlay), "readlink": _readlink(overlay), "symlink": _symlink(overlay), "link": _link(overlay), "chdir": overlay.change_folder,
        "getcwd": lambda: overlay.folder, "getcwdb": lambda: os.fsencode(overlay.folder), "truncate": _truncate(overlay),
    }
    functions.update({name: _reading(overlay, name) for name in ("stat", "lstat", "statvfs", "listxattr", "getxattr") if name in REAL})
    functions.update({name: _changing(overlay, name) for name in ("chmod", "utime", "chown", "setxattr", "mkfifo") if name in REAL})
    functions.update({name: _removing(overlay, name) for name in ("remove", "unlink", "rmdir")})
    functions.update({name: _renaming(overlay, name) for name in ("rename", "replace")})
    for name, function in functions.items():
        patches.set(os, name, function)
    accessor = getattr(pathlib, "_NormalAccessor", None)  # before Python 3.11 pathlib keeps functions of its own
    for name, function in functions.items():
        if accessor is not None and hasattr(accessor, name):
            patches.set(accessor, name, staticmethod(function))
    if accessor is not None:
        patches.set_where_present(accessor, "open", staticmethod(functions["open"] if sys.version_info < (3, 10) else opener))
    patches.set(shutil, "rmtree", _rmtree(overlay))
    patches.set(shutil, "move", _move)
    _temporary_files(overlay, patches)


def _temporary_files(overlay: Overlay, patches: Patches) -> None:
    """Temporary files are in the scratch folder itself, where C finds them too; so are modules that transformers writes and imports."""
    folder = os.path.join(overlay.scratch, "tmp")
    if not exists(folder):
        REAL["mkdir"](folder)
    patches.set(tempfile, "tempdir", folder)
    for name in ("TMPDIR", "TEMP", "TMP"):
        patches.set_item(os.environ, name, folder)
    patches.set_item(os.environ, "HF_MODULES_CACHE", os.path.join(overlay.scratch, "modules"))


def _opener(overlay: Overlay, real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def opener(file, mode="r", *args, **kwargs):
        if any(letter in mode for letter in "wx"):
            return real(overlay.to_write(file) if "w" in mode else _new(overlay, file), mode, *args, **kwargs)
        if any(letter in mode for letter in "a+"):
            return real(overlay.to_change(file), mode, *args, **kwargs)
        return real(overlay.to_read(file), mode, *args, **kwargs)

    return opener


def _new(overlay: Overlay, path: Any) -> Any:
    key = overlay.key(path)
    if key is not None and overlay.is_seen(key):
        raise FileExistsError(17, "File exists", path)
    return overlay.to_write(path)


def _os_open(overlay: Overlay) -> Callable[..., Any]:
    real = REAL["open"]

    def run(path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is not None or isinstance(path, int):
            return real(path, flags, mode, dir_fd=dir_fd)
        if not flags & _WRITING_FLAGS:
            return real(overlay.to_read(path), flags, mode)
        if flags & os.O_CREAT and flags & os.O_EXCL:
            return real(_new(overlay, path), flags, mode)
        return real(overlay.to_write(path) if flags & os.O_TRUNC else overlay.to_change(path), flags, mode)

    return run


def _is_plain(path: Any, kwargs: Any) -> bool:
    """A call that no overlay can follow: by a file's number, or relative to a folder's."""
    return isinstance(path, int) or kwargs.get("dir_fd") is not None


def _reading(overlay: Overlay, name: str) -> Callable[..., Any]:
    real = REAL[name]

    def run(path=".", *args, **kwargs):
        return real(path if _is_plain(path, kwargs) else overlay.to_read(path), *args, **kwargs)

    return run


def _listdir(overlay: Overlay) -> Callable[..., Any]:
    def listdir(path="."):
        key = None if path is None else overlay.key(path)
        if key is None or overlay.is_own(key) or not overlay.is_changed(key):
            return REAL["listdir"](path if key is None or not overlay.has_moved else overlay.to_read(path))
        names = overlay.names(key)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else list(names)

    return listdir


def _scandir(overlay: Overlay) -> Callable[..., Any]:
    def scandir(path="."):
        key = None if path is None else overlay.key(path)
        if key is None or isinstance(path, bytes) or overlay.is_own(key) or (not overlay.is_changed(key) and not overlay.has_moved):
            return REAL["scandir"](path)
        folder = os.fspath(path)
        return Entries(Entry(name, os.path.join(folder, name)) for name in overlay.names(key))

    return scandir


def _access(overlay: Overlay) -> Callable[..., Any]:
    def access(path, mode, **kwargs):
        if _is_plain(path, kwargs):
            return REAL["access"](path, mode, **kwargs)
        key = overlay.key(path)
        if mode & os.W_OK and key is not None and not overlay.is_own(key):
            return overlay.is_seen(key)  # what can be seen can be written to, here
        return REAL["access"](overlay.to_read(path), mode, **kwargs)

    return access


def _mkdir(overlay: Overlay) -> Callable[..., Any]:
    def mkdir(path, mode=0o777, **kwargs):
        if _is_plain(path, kwargs):
            return REAL["mkdir"](path, mode, **kwargs)
        key = overlay.key(path)
        if overlay.is_seen(key):
            raise FileExistsError(17, "File exists", path)
        if not overlay.is_seen(os.path.dirname(key)):
            raise FileNotFoundError(2, "No such file or directory", path)
        return REAL["mkdir"](overlay.to_write(path), mode)

    return mkdir


def _changing(overlay: Overlay, name: str) -> Callable[..., Any]:
    """Rights and times of a file: those of a real one stay as they are."""
    real = REAL[name]

    def run(path, *args, **kwargs):
        if _is_plain(path, kwargs):
            return real(path, *args, **kwargs)
        target = overlay.to_write(path)
        if target is path or exists(target) or name == "mkfifo":
            return real(target, *args, **kwargs)
        if not overlay.is_seen(overlay.key(path)):
            raise FileNotFoundError(2, "No such file or directory", path)
        return None

    return run


def _truncate(overlay: Overlay) -> Callable[..., Any]:
    def truncate(path, length):
        return REAL["truncate"](overlay.to_change(path), length)

    return truncate


def _removing(overlay: Overlay, name: str) -> Callable[..., Any]:
    real = REAL[name]

    def run(path, *args, **kwargs):
        if _is_plain(path, kwargs):
            return real(path, *args, **kwargs)
        key = overlay.key(path)
        if overlay.is_own(key):
            return real(path)
        if not overlay.is_seen(key):
            raise FileNotFoundError(2, "No such file or directory", path)
        if name == "rmdir" and overlay.names(key):
            raise OSError(39, "Directory not empty", path)
        if exists(overlay.files + key):
            real(overlay.files + key)
        elif name != "rmdir" and os.path.isdir(path) and not os.path.islink(path):
            raise IsADirectoryError(21, "Is a directory", path)
        if exists(key):
            overlay.hide(key)
        return None

    return run


def _readlink(overlay: Overlay) -> Callable[..., Any]:
    def readlink(path, **kwargs):
        if _is_plain(path, kwargs):
            return REAL["readlink"](path, **kwargs)
        target = REAL["readlink"](overlay.to_read(path))
        text = os.fsdecode(target)
        return text[len(overlay.files):] if text.startswith(overlay.files + os.sep) else target

    return readlink


def _symlink(overlay: Overlay) -> Callable[..., Any]:
    def symlink(source, destination, *args, **kwargs):
        """A link in the scratch folder leads to the copy there, or to the real file where there is none."""
        pointed = overlay.key(os.path.join(os.path.dirname(os.fspath(destination)), os.fspath(source)))
        target = _new(overlay, destination)
        if target is destination:
            return REAL["symlink"](source, destination, *args, **kwargs)
        is_real = overlay.is_own(pointed) or (exists(pointed) and not overlay.is_hidden(pointed) and not exists(overlay.files + pointed))
        return REAL["symlink"](pointed if is_real else overlay.files + pointed, target)

    return symlink


def _link(overlay: Overlay) -> Callable[..., Any]:
    def link(source, destination, **kwargs):
        target = _new(overlay, destination)
        if target is destination:
            return REAL["link"](source, destination, **kwargs)
        overlay.copy(overlay.to_read(source), target)
        return None

    return link


def _renaming(overlay: Overlay, name: str) -> Callable[..., Any]:
    real = REAL[name]

    def run(source, destination, **kwargs):
        key = overlay.key(source)
        if not overlay.is_own(key) and not overlay.is_seen(key):
            raise FileNotFoundError(2, "No such file or directory", source)
        target, origin = overlay.to_write(destination), overlay.to_read(source)
        if origin is source and overlay.is_own(key):
            return _moved(real, source, target)
        if origin == overlay.files + key and not (os.path.isdir(source) and exists(key) and not overlay.is_hidden(key)):
            real(origin, target)
        elif os.path.isdir(source):  # a real folder, perhaps with files of the script
            shutil.copytree(source, destination, dirs_exist_ok=True, symlinks=True)
            if exists(origin) and origin == overlay.files + key:
                _remove_tree(origin)
        else:
            overlay.copy(origin, target)
        if exists(key):
            overlay.hide(key)
        return None

    return run


def _moved(real: Callable[..., Any], source: Any, target: Any) -> Any:
    """Out of the scratch folder: another disk, perhaps."""
    try:
        return real(source, target)
    except OSError as error:
        if error.errno != 18:
            raise
        Overlay.copy(source, target)
        return REAL["unlink"](source)


def _rmtree(overlay: Overlay) -> Callable[..., Any]:
    def rmtree(path, ignore_errors=False, *args, **kwargs):
        key = overlay.key(path)
        own = overlay.is_own(key)
        if not (exists(key) if own else overlay.is_seen(key)):
            if ignore_errors:
                return None
            raise FileNotFoundError(2, "No such file or directory", path)
        copy = key if own else overlay.files + key
        if exists(copy):
            _remove_tree(copy)
        if not own and exists(key):
            overlay.hide(key)
        return None

    return rmtree


def _remove_tree(folder: str) -> None:
    with REAL["scandir"](folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                _remove_tree(entry.path)
            else:
                REAL["unlink"](entry.path)
    REAL["rmdir"](folder)


def _move(source, destination, *args, **kwargs):
    final = os.path.join(destination, os.path.basename(os.fspath(source).rstrip("/"))) if os.path.isdir(destination) else destination
    os.rename(source, final)
    return final
