//! The manager, with real shims, a real store and emulated GPUs.

mod commands;
mod crash;
mod crash_load;
mod end_to_end;
mod faults;
mod lab;
mod life;
mod prediction;
mod replay;
mod rules;
mod served;
mod up;
