//! Emulated GPUs seen from outside: through the stand-in library, by programs that know nothing of it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod allocation;
mod clients;
mod driver;
mod memory_limits;
mod mig;
mod nvidia;
mod nvml;
mod nvml_events;
mod nvml_faults;
mod nvml_gpm;
mod nvml_processes;
mod support;
