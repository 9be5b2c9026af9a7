"""The files that a script sees: its own writes over the real files, through every usual way to reach them."""

from __future__ import annotations

import bz2
import glob
import importlib.util
import mmap
import os
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from carma.memory import c_openers, overlay_functions
from carma.memory.import_hooks import ImportHooks
from carma.memory.overlay import Overlay
from carma.memory.patches import Patches


class OverlayTest(unittest.TestCase):
    """In each test the working folder is a real one with `real.txt`, `data/a.txt` and `data/b.txt`, which must be the same after it."""

    def setUp(self) -> None:
        folders = [tempfile.TemporaryDirectory() for _ in range(2)]
        for folder in folders:
            self.addCleanup(folder.cleanup)
        self.place, self.scratch = (os.path.realpath(folder.name) for folder in folders)
        for name in ("real.txt", "data/a.txt", "data/b.txt"):
            path = Path(self.place, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"real {name}")
        os.symlink("data", os.path.join(self.place, "linked"))
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.place)
        self.before = self._real()
        self.patches = Patches()
        self.overlay = Overlay(self.scratch)
        overlay_functions.install(self.overlay, self.patches)
        hooks = ImportHooks()
        hooks.install(self.patches)
        c_openers.install(self.overlay, self.patches, hooks)

    def tearDown(self) -> None:
        self.patches.undo()
        self.assertEqual(self.before, self._real(), "the real files are as they were")

    def _real(self) -> dict[str, str]:
        return {str(path.relative_to(self.place)): path.read_text() if path.is_file() else "" for path in Path(self.place).rglob("*")}


class Paths(OverlayTest):
    def test_touch_makes_a_file(self) -> None:
        Path("made").touch()
        self.assertTrue(os.path.isfile("made"))
        Path("real.txt").touch()
        self.assertEqual("real real.txt", Path("real.txt").read_text())
        self.assertRaises(FileNotFoundError, os.utime, "nowhere")

    def test_changes_of_real_files_go_to_a_copy(self) -> None:
        with open("real.txt", "a") as file:
            file.write("!")
        with open("data/a.txt", "r+") as file:
            file.write("REAL")
        os.truncate("data/b.txt", 4)
        self.assertEqual(["real real.txt!", "REAL data/a.txt", "real"], [Path(name).read_text() for name in ("real.txt", "data/a.txt", "data/b.txt")])
        self.assertRaises(FileExistsError, open, "real.txt", "x")

    def test_listings_are_merged(self) -> None:
        os.makedirs("data/new/deep")
        Path("data/c.txt").write_text("c")
        os.remove("data/a.txt")
        names = ["b.txt", "c.txt", "new"]
        self.assertEqual(names, sorted(os.listdir("data")))
        with os.scandir("data") as entries:
            found = {entry.name: (entry.path, entry.is_dir(), entry.is_file()) for entry in entries}
        self.assertEqual({"b.txt": ("data/b.txt", False, True), "c.txt": ("data/c.txt", False, True), "new": ("data/new", True, False)}, found)
        self.assertEqual(["data/b.txt", "data/c.txt"], sorted(glob.glob("data/*.txt")))
        self.assertEqual(["data/c.txt"], [str(path) for path in Path("data").rglob("c*")])
        self.assertEqual({"data": (["new"], ["b.txt", "c.txt"]), "data/new": (["deep"], []), "data/new/deep": ([], [])},
                         {folder: (folders, sorted(files)) for folder, folders, files in os.walk("data")})
        self.assertEqual(sorted(names), sorted(path.name for path in Path("data").iterdir()))

    def test_a_removed_folder_comes_back_empty(self) -> None:
        shutil.rmtree("data")
        self.assertFalse(os.path.exists("data/a.txt"))
        self.assertRaises(FileNotFoundError, os.listdir, "data")
        os.mkdir("data")
        self.assertEqual([], os.listdir("data"))
        Path("data/a.txt").write_text("mine")
        self.assertEqual("mine", Path("data/a.txt").read_text())
        self.assertRaises(OSError, os.rmdir, "data")
        os.remove("data/a.txt")
        os.rmdir("data")
        self.assertFalse(os.path.isdir("data"))

    def test_the_working_folder_may_be_in_the_scratch_folder_only(self) -> None:
        os.makedirs("runs/1")
        os.chdir("runs/1")
        self.assertEqual(os.path.join(self.place, "runs", "1"), os.getcwd())
        self.assertEqual(Path(self.place, "runs", "1"), Path.cwd())
        Path("log.txt").write_text("log")
        self.assertEqual(os.path.join(self.place, "runs/1/log.txt"), os.path.abspath("log.txt"))
        self.assertEqual("real real.txt", Path("../../real.txt").read_text())
        self.assertEqual(["a.txt", "b.txt"], sorted(os.listdir("../../data")))
        self.assertEqual(["log.txt"], os.listdir())
        os.chdir("../..")
        self.assertEqual("log", Path("runs/1/log.txt").read_text())
        self.assertEqual("real data/a.txt", Path("data/a.txt").read_text())

    def test_copies_and_moves(self) -> None:
        shutil.copytree("data", "copy")
        self.assertEqual(["a.txt", "b.txt"], sorted(os.listdir("copy")))
        shutil.copy2("real.txt", "copy/c.txt")
        shutil.move("copy/c.txt", "data")
        os.replace("copy", "moved")
        self.assertEqual((["a.txt", "b.txt", "c.txt"], ["a.txt", "b.txt"]), (sorted(os.listdir("data")), sorted(os.listdir("moved"))))
        os.rename("data", "other")
        self.assertEqual((False, ["a.txt", "b.txt", "c.txt"]), (os.path.exists("data"), sorted(os.listdir("other"))))
        self.assertRaises(FileNotFoundError, os.rename, "data", "again")

    def test_links(self) -> None:
        Path("linked/c.txt").write_text("c")
        self.assertEqual("c", Path("data/c.txt").read_text(), "a folder and a link to it are one")
        os.mkdir("snapshots")
        for name in ("a.txt", "c.txt"):
            os.symlink(f"../data/{name}", f"snapshots/{name}")
        self.assertEqual(["real data/a.txt", "c"], [Path("snapshots", name).read_text() for name in ("a.txt", "c.txt")])
        self.assertEqual(os.path.join(self.place, "data/c.txt"), os.path.realpath("snapshots/c.txt"))

    def test_facts_of_paths_that_only_the_script_sees(self) -> None:
        os.mkdir("out")
        self.assertGreater(os.statvfs("out").f_blocks, 0)
        self.assertGreater(shutil.disk_usage("out").free, 0)
        self.assertTrue(os.access("out", os.W_OK))
        os.chmod("out", 0o755)
        self.assertRaises(FileExistsError, os.mkdir, "out")
        self.assertRaises(FileNotFoundError, os.mkdir, "nowhere/out")
        self.assertRaises(FileNotFoundError, open, "nowhere/out", "w")


class Formats(OverlayTest):
    def test_archives(self) -> None:
        with zipfile.ZipFile("all.zip", "w") as archive:
            archive.write("data/a.txt")
        with zipfile.ZipFile("all.zip") as archive:
            archive.extractall("unzipped")
        with tarfile.open("all.tar.gz", "w:gz") as archive:
            archive.add("data")
        with tarfile.open("all.tar.gz") as archive:
            archive.extractall("untarred")
        with bz2.open("b.bz2", "wt") as file:
            file.write("text")
        self.assertEqual("real data/a.txt", Path("unzipped/data/a.txt").read_text())
        self.assertEqual("real data/b.txt", Path("untarred/data/b.txt").read_text())
        self.assertEqual("text", bz2.open("b.bz2", "rt").read())

    def test_mapped_and_temporary_files(self) -> None:
        Path("mapped").write_bytes(b"0123456789")
        with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
            view[0:1] = b"x"
        self.assertEqual(b"x123456789", Path("mapped").read_bytes())
        with tempfile.NamedTemporaryFile() as file:
            self.assertTrue(file.name.startswith(self.scratch), "where C finds it too")
        with tempfile.TemporaryDirectory(dir=".") as folder:
            Path(folder, "x").write_text("x")

    def test_sqlite(self) -> None:
        os.mkdir("logs")
        with sqlite3.connect("logs/runs.db") as database:
            database.execute("create table runs (name text)")
            database.execute("insert into runs values ('first')")
        database.close()
        database = sqlite3.connect("logs/runs.db")
        self.assertEqual([("first",)], database.execute("select * from runs").fetchall())
        database.close()

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "not installed: pyarrow")
    def test_arrow(self) -> None:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"text": ["a", "b"]})
        os.makedirs("cache/deep")
        with pyarrow.OSFile("cache/deep/x.arrow", "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        with pyarrow.memory_map("cache/deep/x.arrow") as source:
            self.assertEqual(table, pyarrow.ipc.open_stream(source).read_all())
        pyarrow.parquet.write_table(table, "cache/x.parquet")
        self.assertEqual(table, pyarrow.parquet.read_table("cache/x.parquet"))

    @unittest.skipUnless(importlib.util.find_spec("h5py"), "not installed: h5py")
    def test_hdf5(self) -> None:
        import h5py

        with h5py.File("x.h5", "w") as file:
            file["values"] = [1, 2, 3]
        with h5py.File("x.h5") as file:
            self.assertEqual([1, 2, 3], list(file["values"]))


class Later(unittest.TestCase):
    def test_a_module_is_changed_when_it_is_imported_not_when_it_is_asked_for(self) -> None:
        changed = []
        hooks, patches = ImportHooks(), Patches()
        hooks.when_imported("this_module_is_tiny", lambda module: changed.append(module.value))
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "this_module_is_tiny.py").write_text("value = 7\n")
            sys.path.insert(0, folder)
            hooks.install(patches)
            try:
                self.assertIsNotNone(importlib.util.find_spec("this_module_is_tiny"))
                self.assertEqual([], changed)
                importlib.import_module("this_module_is_tiny")
                self.assertEqual([7], changed)
            finally:
                patches.undo()
                sys.path.remove(folder)
                sys.modules.pop("this_module_is_tiny", None)


if __name__ == "__main__":
    unittest.main()
