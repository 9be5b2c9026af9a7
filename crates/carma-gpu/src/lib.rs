//! The GPUs of a server as CARMA sees them: NVML, DCGM, MPS and MIG.
//!
//! ```text
//!             ┌─ inventory, samples, processes, events ── NVML ─┐
//!  carma ◄────┤  profiling counters ── GPM, dcgmi, exporter ────┼── GPUs: real, or emulated behind the same library
//!             └─ MPS servers, MIG instances, compute modes ─────┘
//! ```
//!
//! There is no trait over devices: the seam is the driver's own interface, and emulated GPUs stand behind the very library that real ones do.
//! Every call into the driver has a deadline, because a sick GPU can make any of them hang.

mod driver;
mod error;
mod identity;
mod lane;
pub mod mig;
pub mod mps;
pub mod profiling;
mod topology;

pub use driver::{DEADLINE, Driver};
pub use error::DriverError;
pub use identity::{DeviceUuid, NotAUuid};
pub use topology::topology;
