"""The client of emulated GPUs, as far as it needs none."""

from __future__ import annotations

import unittest
from pathlib import Path

from carma import emu


class Client(unittest.TestCase):
    def test_sizes(self) -> None:
        self.assertEqual([512, 3 << 30, 1536 << 20, 7], [emu.size(text) for text in (512, "3GiB", " 1.5 gib", "7")])
        for wrong in ("", "GiB", "3 apples", "-1GiB"):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "is not a size: write bytes, or 512MiB, 3GiB"):
                emu.size(wrong)

    def test_folders(self) -> None:
        self.assertEqual([Path("/m/lib"), Path("/a"), Path("/b")], list(emu.folders({"CARMA_EMU": "/m", "LD_LIBRARY_PATH": "/a::/b"}))[:3])
        self.assertEqual(1, len(list(emu.folders({"CARMA_EMU": "", "LD_LIBRARY_PATH": ""}))))

    def test_out_of_memory_is_what_scripts_catch(self) -> None:
        self.assertTrue(issubclass(emu.OutOfMemoryError, RuntimeError))
