"""What a script looks at: while all of it stays the same, its dry run need not be repeated.

- files: opened or asked about, present or not, and the sources of all modules
- folders: listed
- imports: folders that Python searched for modules
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .overlay import LEFT_ALONE, REAL, REAL_OPEN

MOST = 100_000
"""More paths than this are not looked at again: that would take long."""

OTHER_PROCESSES = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty", "pty.spawn")
FOR_IMPORTS = ("<frozen importlib._bootstrap_external>", "/importlib/metadata/__init__.py", "/pkgutil.py", "/carma/memory/failure.py")
"""Code that lists folders for modules and packages alone, and code between it and the listing."""
BETWEEN = ("/carma/memory/overlay.py", "/carma/memory/overlay_functions.py", "/glob.py")
OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Inputs:
    def __init__(self, scratch: str) -> None:
        self.files: set[str] = set()
        self.folders: set[str] = set()
        self.imports: set[str] = set()
        self.complete = True
        """Whether nothing else was read: another process may read anything."""
        self._left_out = (*LEFT_ALONE, OWN_FOLDER + os.sep, os.path.realpath(scratch) + os.sep)
        self._listens = True

    def listen(self) -> None:
        sys.addaudithook(self._heard)  # there is no way to take it off

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._listens:
            return
        if event == "open" or event in ("os.listdir", "os.scandir"):
            path = self._absolute(arguments[0] if arguments and arguments[0] is not None else ".")
            if path is None:
                return
            if event == "open":
                self.add_file(path)
            else:
                self._add(self.imports if self._is_for_imports() else self.folders, path)
        elif event in OTHER_PROCESSES:
            self.complete = False

    @staticmethod
    def _is_for_imports() -> bool:
        caller = sys._getframe(2)
        while caller.f_back is not None and caller.f_code.co_filename.endswith(BETWEEN):
            caller = caller.f_back
        return caller.f_code.co_filename.endswith(FOR_IMPORTS)

    @staticmethod
    def _absolute(path: Any) -> Any:
        if isinstance(path, int):
            return None
        try:
            return os.path.normpath(os.path.join(REAL["getcwd"](), os.fsdecode(path)))
        except (TypeError, ValueError, OSError):
            return None

    def add_file(self, path: str) -> None:
        # Python writes these itself, from sources that count.
        if "__pycache__" not in path:
            self._add(self.files, path)

    def _add(self, paths: set[str], path: str) -> None:
        if not path.startswith(self._left_out) and path != OWN_FOLDER:
            paths.add(path)
            self.complete = self.complete and len(paths) < MOST

    def stop(self) -> None:
        """What follows is not the script's."""
        self._listens = False

    def write(self, file: str) -> None:
        # Folders where these modules might also be found. Not the recorder's own, which is a new one in each run.
        for folder in sys.path:
            self._add(self.imports, os.path.abspath(folder))
        for module in list(sys.modules.values()):
            source = getattr(getattr(module, "__spec__", None), "origin", None)
            if isinstance(source, str) and os.path.isabs(source):
                self.add_file(source)
        known = {"complete": self.complete, **{name: sorted(getattr(self, name)) for name in ("files", "folders", "imports")}}
        with REAL_OPEN(file, "w", encoding="utf-8", errors="surrogateescape") as out:
            json.dump(known, out, ensure_ascii=False)
