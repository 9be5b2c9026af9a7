//! The manager, with real shims, a real store and emulated GPUs.

mod crash;
mod crash_load;
mod crash_speed;
mod faults;
mod lab;
mod life;
mod security;
mod up;
