"""CARMA's Python side: `carma.Executor` runs functions as jobs, `carma.client` submits commands, `carma.memory` traces the GPU memory that a
training script will allocate, `carma.emu` is for scripts on emulated GPUs."""


def __getattr__(name):
    # Imported when it is used: the dry run imports this package in front of each script.
    if name == "Executor":
        from carma.executor import Executor

        return Executor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
