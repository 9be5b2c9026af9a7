"""Writes of a script go to a scratch folder; reads see what it has written there, else the real files.

Python's own functions are covered (`open`, `os`, `shutil`, and with them pathlib, pickle, numpy, PIL, logging).
A library that writes from C by a path of its own is not; `torch.save` and safetensors are handled by name.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
from typing import Any, Callable

from .patches import Patches

_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LEFT_ALONE = ("/dev/", "/proc/", "/sys/")


class Overlay:
    def __init__(self, scratch: str) -> None:
        self.scratch = os.path.realpath(scratch)
        self.files = os.path.join(self.scratch, "files")
        self._removed: set[str] = set()
        self._real: dict[str, Callable[..., Any]] = {}

    def install(self, patches: Patches) -> None:
        for name in ("open", "mkdir", "stat", "lstat", "listdir", "scandir", "remove", "unlink", "rmdir", "rename", "replace", "access",
                     "link", "symlink", "chmod", "utime", "truncate", "mkfifo", "chown", "removedirs"):
            self._real[name] = getattr(os, name)
        self._real["io.open"] = io.open
        opener = self._opener()
        patches.set(builtins, "open", opener)
        patches.set(io, "open", opener)
        patches.set(os, "open", self._os_open)
        for name in ("stat", "lstat", "listdir", "scandir", "access"):
            patches.set(os, name, self._reading(name))
        for name in ("mkdir", "chmod", "utime", "truncate", "mkfifo", "chown"):
            patches.set(os, name, self._writing(name))
        for name in ("remove", "unlink", "rmdir", "removedirs"):
            patches.set(os, name, self._removing(name))
        for name in ("rename", "replace", "link", "symlink"):
            patches.set(os, name, self._two_paths(name))
        patches.set(shutil, "rmtree", self._rmtree)
        patches.set(shutil, "move", self._move)

    # -- where a path leads

    def to_write(self, path: Any) -> Any:
        """Where a write to a path goes; the path itself when it is in the scratch folder or no file."""
        absolute = self._absolute(path)
        if absolute is None or absolute.startswith(self.scratch + os.sep) or absolute.startswith(_LEFT_ALONE):
            return path
        target = self.files + absolute
        parent = os.path.dirname(target)
        # only a folder that the script sees may be written to
        if self._seen(os.path.dirname(absolute)):
            self._make(parent)
        self._removed.discard(absolute)
        return target

    def to_read(self, path: Any) -> Any:
        absolute = self._absolute(path)
        if absolute is None or absolute.startswith(self.scratch + os.sep):
            return path
        target = self.files + absolute
        if self._exists(target):
            return target
        if absolute in self._removed:
            return os.path.join(self.scratch, "removed", "file")
        return path

    def _absolute(self, path: Any) -> Any:
        if isinstance(path, int) or path is None:
            return None
        text = os.fspath(path)
        if isinstance(text, bytes):
            text = os.fsdecode(text)
        return os.path.normpath(os.path.join(os.getcwd(), text))

    def _exists(self, path: str) -> bool:
        try:
            self._real["lstat"](path)
        except (OSError, ValueError):
            return False
        return True

    def _seen(self, path: str) -> bool:
        return self._exists(self.files + path) or (path not in self._removed and self._exists(path))

    def _make(self, folder: str) -> None:
        missing = []
        while not self._exists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            self._real["mkdir"](path)

    # -- the functions that are replaced

    def _opener(self) -> Callable[..., Any]:
        real = self._real["io.open"]

        @functools.wraps(real)
        def opener(file, mode="r", *args, **kwargs):
            if any(letter in mode for letter in "wax+"):
                target = self.to_write(file)
                if target is not file and ("a" in mode or "r" in mode):
                    self._bring(file, target)
                return real(target, mode, *args, **kwargs)
            return real(self.to_read(file), mode, *args, **kwargs)

        return opener

    def _bring(self, file: Any, target: str) -> None:
        """A file that is changed in place is copied first."""
        if self._exists(target) or not self._exists(os.fspath(file)):
            return
        with self._real["io.open"](file, "rb") as source, self._real["io.open"](target, "wb") as copy:
            while block := source.read(1 << 20):
                copy.write(block)

    def _os_open(self, path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is not None or isinstance(path, int):
            return self._real["open"](path, flags, mode, dir_fd=dir_fd)
        if flags & _WRITING_FLAGS:
            target = self.to_write(path)
            if target is not path and not flags & os.O_TRUNC and not self._is_folder(path):
                self._bring(path, target)
            return self._real["open"](target, flags, mode)
        return self._real["open"](self.to_read(path), flags, mode)

    def _is_folder(self, path: Any) -> bool:
        try:
            return (self._real["stat"](path).st_mode & 0o170000) == 0o040000
        except OSError:
            return False

    def _reading(self, name: str) -> Callable[..., Any]:
        real = self._real[name]
        merged = name in ("listdir",)

        def run(path=".", *args, **kwargs):
            if kwargs.get("dir_fd") is not None or isinstance(path, int):
                return real(path, *args, **kwargs)
            if name == "access" and args and args[0] & os.W_OK:
                return self._seen(self._absolute(path))
            if merged:
                return self._merged(path)
            return real(self.to_read(path), *args, **kwargs)

        return run

    def _merged(self, path: Any) -> list[str]:
        """The names in a folder: the real ones and those that the script has made."""
        absolute = self._absolute(path)
        names: set[str] = set()
        found = False
        for folder in (absolute, self.files + absolute):
            try:
                names.update(self._real["listdir"](folder))
                found = True
            except FileNotFoundError:
                continue
        if not found:
            return self._real["listdir"](path)
        return sorted(name for name in names if os.path.join(absolute, name) not in self._removed)

    def _writing(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def run(path, *args, **kwargs):
            if kwargs.get("dir_fd") is not None or isinstance(path, int):
                return real(path, *args, **kwargs)
            absolute = self._absolute(path)
            if name == "mkdir" and self._seen(absolute):
                raise FileExistsError(17, "File exists", path)
            if name == "mkdir" and not self._seen(os.path.dirname(absolute)):
                raise FileNotFoundError(2, "No such file or directory", path)
            target = self.to_write(path)
            if target is not path and name != "mkdir" and not self._exists(target):
                return None  # a change of a real file's rights or times: there is nothing to change
            return real(target, *args, **kwargs)

        return run

    def _removing(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def run(path, *args, **kwargs):
            if kwargs.get("dir_fd") is not None:
                return real(path, *args, **kwargs)
            absolute = self._absolute(path)
            target = self.to_write(path)
            if target is path:
                return real(path)
            if self._exists(target):
                real(target)
            elif not self._exists(absolute):
                raise FileNotFoundError(2, "No such file or directory", path)
            self._removed.add(absolute)
            return None

        return run

    def _two_paths(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def run(source, destination, *args, **kwargs):
            target = self.to_write(destination)
            origin = self.to_read(source) if name != "symlink" else source
            if name in ("rename", "replace") and origin is source and self.to_write(source) is not source:
                if self._is_folder(source):
                    shutil.copytree(source, target)
                else:
                    self._bring(source, target)
                self._removed.add(self._absolute(source))
                return None
            return real(origin, target, *args, **kwargs)

        return run

    def _rmtree(self, path, *args, **kwargs):
        absolute = self._absolute(path)
        target = self.to_write(path)
        if target is path:
            return self._remove_tree(absolute)
        if self._exists(target):
            self._remove_tree(target)
        self._removed.add(absolute)
        return None

    def _remove_tree(self, folder: str) -> None:
        for name in self._real["listdir"](folder):
            path = os.path.join(folder, name)
            if self._is_folder(path) and not os.path.islink(path):
                self._remove_tree(path)
            else:
                self._real["unlink"](path)
        self._real["rmdir"](folder)

    def _move(self, source, destination, *args, **kwargs):
        final = os.path.join(destination, os.path.basename(os.fspath(source).rstrip("/"))) if os.path.isdir(destination) else destination
        os.rename(source, final)
        return final
