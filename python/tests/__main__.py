"""Runs all tests (`python3 -m tests`), and records those that were skipped in the file that CARMA_SKIPPED names."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent

suite = unittest.defaultTestLoader.discover(str(TESTS), top_level_dir=str(TESTS.parent))
result = unittest.TextTestRunner().run(suite)
record = os.environ.get("CARMA_SKIPPED")
if record and result.skipped:
    with open(record, "a", encoding="utf-8") as file:
        file.writelines(f"python/{test.id()}: {reason}\n" for test, reason in result.skipped)
sys.exit(0 if result.wasSuccessful() else 1)
