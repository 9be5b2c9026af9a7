"""The files that a script sees: what it has written, in a scratch folder, over the real ones.

    /data/out/log.txt     written by the script      scratch/files/data/out/log.txt
    /data/train.csv       only read                  /data/train.csv
    /data/old.ckpt        removed by the script      hidden, and so is all below a removed folder

Paths are keys here: absolute, with the links of the real folders resolved.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Callable, Iterable, Iterator, Optional

LEFT_ALONE = ("/dev/", "/proc/", "/sys/")

REAL: dict[str, Callable[..., Any]] = {
    name: getattr(os, name)
    for name in (
        "open", "mkdir", "stat", "lstat", "listdir", "scandir", "remove", "unlink", "rmdir", "rename", "replace", "access", "link",
        "symlink", "readlink", "chmod", "utime", "truncate", "mkfifo", "chown", "statvfs", "chdir", "getcwd", "listxattr", "getxattr", "setxattr",
    )
    if hasattr(os, name)
}
REAL_OPEN = open


class Overlay:
    def __init__(self, scratch: str) -> None:
        self.scratch = os.path.realpath(scratch)
        self.files = os.path.join(self.scratch, "files")
        self._removed: set[str] = set()
        self._folders: dict[str, str] = {}  # real folders without links
        self.folder = REAL["getcwd"]()
        """The working folder that the script sees; it may exist in the scratch folder only."""
        self.has_moved = False
        self.looked_at: Callable[[str], None] = lambda key: None
        """Is told each real path that the script opens or asks about."""

    # -- where a path leads

    def key(self, path: Any) -> Optional[str]:
        """The absolute path, or None where there is none: for file numbers."""
        if path is None or isinstance(path, int):
            return None
        text = os.fspath(path)
        if isinstance(text, bytes):
            text = os.fsdecode(text)
        if text.startswith("file://"):
            text = text[7:]
        text = os.path.normpath(os.path.join(self.folder, text))
        folder, name = os.path.split(text)
        return os.path.join(self._without_links(folder), name) if name else text

    def _without_links(self, folder: str) -> str:
        known = self._folders.get(folder)
        if known is None:
            parent, name = os.path.split(folder)
            if not name:
                return folder
            above = self._without_links(parent)
            known = os.path.join(above, name)
            if self._is_link(self.files + known):  # made by the script: not remembered
                return self._script_path(os.path.join(os.path.dirname(self.files + known), REAL["readlink"](self.files + known)))
            if not self.is_hidden(known) and self._is_link(known):
                known = self._without_links(os.path.normpath(os.path.join(above, REAL["readlink"](known))))
            if exists(known):
                self._folders[folder] = known
        return known

    def _script_path(self, path: str) -> str:
        """The script's name of a place in the scratch folder."""
        path = os.path.normpath(path)
        return path[len(self.files):] if path.startswith(self.files + os.sep) else path

    @staticmethod
    def _is_link(path: str) -> bool:
        try:
            return stat.S_ISLNK(REAL["lstat"](path).st_mode)
        except (OSError, ValueError):
            return False

    def is_own(self, key: Optional[str]) -> bool:
        """No business of the overlay: the scratch folder itself, devices."""
        return key is None or key == self.scratch or key.startswith(self.scratch + os.sep) or key.startswith(LEFT_ALONE)

    def to_read(self, path: Any) -> Any:
        key = self.key(path)
        if key is None or self.is_own(key):
            return path
        copy = self.files + key
        if exists(copy):
            return copy
        if self.is_hidden(key):
            return os.path.join(self.scratch, "removed", "file")
        self.looked_at(key)
        return key if self.has_moved else path

    def to_write(self, path: Any) -> Any:
        """Where a write to a path goes. Only a folder that the script sees may be written to."""
        key = self.key(path)
        if key is None or self.is_own(key):
            return path
        if self.is_seen(os.path.dirname(key)):
            self._make(os.path.dirname(self.files + key))
        return self.files + key

    def to_change(self, path: Any) -> Any:
        """As `to_write`, for a file that is changed in place: it is copied first."""
        target = self.to_write(path)
        key = self.key(path)
        is_new = target is not path and key is not None and not exists(target)
        if is_new and not self.is_hidden(key) and os.path.isfile(key):
            self.copy(key, target)
        return target

    @staticmethod
    def copy(source: str, target: str) -> None:
        with REAL_OPEN(source, "rb") as old, REAL_OPEN(target, "wb") as new:
            while block := old.read(1 << 20):
                new.write(block)

    # -- what is there

    def is_hidden(self, key: str) -> bool:
        """Whether the real file is removed, or lies below a removed folder."""
        if not self._removed:
            return False
        while len(key) > 1:
            if key in self._removed:
                return True
            key = os.path.dirname(key)
        return False

    def is_seen(self, key: str) -> bool:
        return exists(self.files + key) or (exists(key) and not self.is_hidden(key))

    def hide(self, key: str) -> None:
        self._removed.add(key)

    def is_changed(self, key: str) -> bool:
        """Whether a folder may look other than the real one."""
        return exists(self.files + key) or self.is_hidden(key) or any(os.path.dirname(path) == key for path in self._removed)

    def names(self, key: str) -> Iterable[str]:
        """The names in a folder: the real ones that are left, and those that the script has made."""
        names: set[str] = set()
        problem: Optional[OSError] = None
        found = False
        for folder, hidden in ((self.files + key, False), (key, True)):
            if hidden and self.is_hidden(key):
                continue
            try:
                listed = REAL["listdir"](folder)
            except OSError as error:
                problem = error
                continue
            found = True
            names.update(name for name in listed if not hidden or not self.is_hidden(os.path.join(key, name)))
        if not found:
            raise type(problem)(problem.errno, problem.strerror, key) if problem else FileNotFoundError(2, "No such file or directory", key)
        return sorted(names)

    def _make(self, folder: str) -> None:
        missing = []
        while not exists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            REAL["mkdir"](path)

    # -- the working folder

    def change_folder(self, path: Any) -> None:
        key = self.key(path)
        if key is None:
            return REAL["chdir"](path)
        place = self.to_read(path)
        REAL["chdir"](place)
        self.folder = key
        self.has_moved = place != path and place != key
        return None


def exists(path: str) -> bool:
    try:
        REAL["lstat"](path)
    except (OSError, ValueError):
        return False
    return True


class Entry:
    """An entry of a folder listing, by the script's own path; `os.stat` finds where it really is."""

    __slots__ = ("name", "path")

    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path

    def __fspath__(self) -> str:
        return self.path

    def _mode(self, follow_symlinks: bool) -> int:
        try:
            return os.stat(self.path, follow_symlinks=follow_symlinks).st_mode
        except FileNotFoundError:
            return 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def is_junction(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self) -> int:
        return os.stat(self.path, follow_symlinks=False).st_ino

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class Entries:
    """What `os.scandir` gives: an iterator that can be closed."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Entry]:
        return self._entries

    def __next__(self) -> Entry:
        return next(self._entries)

    def __enter__(self) -> "Entries":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def close(self) -> None:
        return None
