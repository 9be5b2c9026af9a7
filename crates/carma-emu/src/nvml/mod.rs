//! NVML's C interface over the state: the exports of `libnvidia-ml.so.1`.
//!
//! Every call takes the same path: find the machine, find the device, apply the faults that are set, then query the state.

// The names and arguments are NVIDIA's, and documented there.
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
mod limits;
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
