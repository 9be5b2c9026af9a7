//! The manager, with real shims, a real store and emulated GPUs.

mod commands;
mod end_to_end;
mod estimates;
mod lab;
mod life;
mod prediction;
mod replay;
mod rules;
mod served;
