//! Emulated GPUs behind the driver's own interface.
//!
//! An emulated [`Machine`] is a folder: the state of its GPUs in shared memory, and beside it a stand-in for `libnvidia-ml.so.1`, `dcgmi` and
//! `nvidia-cuda-mps-control` over that state. There is no server to keep alive: each access to the state brings it up to date first.
//!
//! ```text
//!  carma emu train ──► cuda: memory, phases ──┐                         ┌──► nvml  (libnvidia-ml.so.1: nvitop, gpustat, carma-gpu)
//!  a Python script ──► (the same, through C) ─┼─► state (shared memory) ┼──► dcgm  (dcgmi, dcgm-exporter's endpoint)
//!  carma emu fault ──► faults ────────────────┘   speeds, power, energy └──► mps   (nvidia-cuda-mps-control)
//!                                                 by carma-sim's models
//! ```

mod client;
pub mod cuda;
pub mod dcgm;
mod driver_version;
pub mod fault;
mod machine;
mod mps;
mod nvml;
mod profile;
pub mod programs;
pub mod readings;
mod smi;
pub mod state;
pub mod train;

pub use driver_version::{DriverVersion, UnknownDriver};
pub use machine::{LIBRARY, Machine, MachineError, PROGRAMS, VARIABLE};
pub use profile::{MigProfile, Profile, Profiling};
