"""The client of emulated GPUs, as far as it needs none."""

from __future__ import annotations

import math
import os
import unittest
from pathlib import Path
from unittest import mock

from carma import emu


class Client(unittest.TestCase):
    def test_sizes(self) -> None:
        self.assertEqual([512, 3 << 30, 1536 << 20, 7], [emu.size(text) for text in (512, "3GiB", " 1.5 gib", "7")])
        for wrong in ("", "GiB", "3 apples", "-1GiB"):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "is not a size: write bytes, or 512MiB, 3GiB"):
                emu.size(wrong)

        for wrong in (-1, 1 << 64):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "is not a size: write bytes from 0 on"):
                emu.size(wrong)
        for wrong in (1.5, None, True):
            with self.subTest(wrong), self.assertRaisesRegex(TypeError, "is not a size: write whole bytes"):
                emu.size(wrong)

    def test_counters(self) -> None:
        for wrong in (-0.1, 1.1, math.nan):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, f"smact cannot be {wrong}: give 0 to 1"):
                emu.Gpu(smact=wrong)
        with self.assertRaisesRegex(ValueError, "drama cannot be 2: give 0 to 1"):
            emu.Gpu(drama=2)
        with self.assertRaisesRegex(TypeError, "smact is a number, not 'much'"):
            emu.Gpu(smact="much")
        with self.assertRaisesRegex(TypeError, "a workload is a name of the catalogue, not 50"):
            emu.Gpu(50)

    def test_a_machine_that_is_named_must_be_there(self) -> None:
        with mock.patch.dict(os.environ, {"CARMA_EMU": "/nonexistent"}):
            with self.assertRaisesRegex(RuntimeError, "no emulated GPUs in /nonexistent, which CARMA_EMU names"):
                emu.Gpu("resnet50_imagenet_bs64")

    def test_folders(self) -> None:
        self.assertEqual([Path("/m/lib")], list(emu.folders({"CARMA_EMU": "/m", "LD_LIBRARY_PATH": "/a::/b"})))
        self.assertEqual([Path("/a"), Path("/b")], list(emu.folders({"LD_LIBRARY_PATH": "/a::/b"}))[:2])
        self.assertEqual(1, len(list(emu.folders({"CARMA_EMU": "", "LD_LIBRARY_PATH": ""}))))

    def test_out_of_memory_is_what_scripts_catch(self) -> None:
        self.assertTrue(issubclass(emu.OutOfMemoryError, RuntimeError))
