//! NVIDIA's own programs and library, as far as they run without a GPU. `make nvidia` downloads them.

mod library;
mod mps;
