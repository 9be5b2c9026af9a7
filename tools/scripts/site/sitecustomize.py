"""For runs of `try-scripts`: made-up data has not the checksums of the real sets, so torchvision is told that they are right."""

from __future__ import annotations

import importlib.abc
import os
import sys


class _Unchecked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "torchvision.datasets.utils":
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            module.check_integrity = lambda file, md5=None: os.path.isfile(file)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Unchecked())
