//! The stand-in against NVIDIA's own headers, and nvtop on emulated GPUs. `make nvidia` downloads both.

mod header;
mod nvtop;
