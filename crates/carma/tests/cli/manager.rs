//! The manager, with real shims, a real store and emulated GPUs.

mod commands;
mod lab;
mod life;
mod rules;
mod end_to_end;
mod prediction;
mod replay;
mod served;
