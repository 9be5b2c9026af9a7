//! NVML's C interface over the state: what `libnvidia-ml.so.1` exports.
//!
//! Every call goes the same way: find the machine, find the device, meet the faults that are set, then ask the state.

// The names and arguments are NVIDIA's; what each does is in NVIDIA's documentation of it.
#![expect(unsafe_code, unreachable_pub, reason = "a C interface whose names and pointers are NVIDIA's")]

mod absent;
mod answer;
mod clocks;
mod declare;
mod error_text;
mod events;
mod fields;
mod gpm;
mod health;
mod held;
mod identity;
mod library;
mod memory;
mod mig;
mod modes;
mod pci;
mod power;
mod processes;
mod thermal;
mod topology;
mod utilisation;

pub(crate) use library::own_folder;
pub(crate) use library::{CUDA, DRIVER};
