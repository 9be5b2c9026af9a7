"""CARMA's Python side. `carma.memory` traces the GPU memory that a training script will allocate; `carma.emu` is for scripts on emulated GPUs."""
