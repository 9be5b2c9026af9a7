"""CARMA's Python side. `carma.memory` says what GPU memory a training script will ask for; `carma.emu` is for scripts on emulated GPUs."""
