//! The manager, with real shims, a real store and emulated GPUs.

mod end_to_end;
mod lab;
mod life;
mod prediction;
mod replay;
mod served;
