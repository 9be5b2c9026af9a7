//! The manager, with real shims, a real store and emulated GPUs.

mod lab;
mod life;
