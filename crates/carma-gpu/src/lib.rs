//! The GPUs of a server as CARMA sees them: NVML, DCGM, MPS and MIG.
//!
//! ```text
//!             ┌─ inventory, samples, processes, events ── NVML ─┐
//!  carma ◄────┤  profiling counters ── GPM, dcgmi, exporter ────┼── GPUs: real, or emulated behind the same library
//!             └─ MPS servers, MIG instances, compute modes ─────┘
//! ```
//!
//! There is no trait over devices: the boundary is the driver's own interface, and emulated GPUs provide the same library as real ones.
//! Every call into the driver has a deadline, because a sick GPU can make any of them hang.

mod activity;
mod allocation;
mod compute_mode;
mod driver;
mod environment;
mod error;
mod events;
mod functions;
mod identity;
mod inventory;
mod lane;
mod left_out;
mod limit_calls;
mod liveness;
mod memory_limits;
pub mod mig;
mod monitor;
pub mod mps;
mod ownership;
mod pci;
mod power_limit;
mod processes;
pub mod profiling;
mod reading;
mod throttling;
mod topology;
mod xid;

pub use activity::ProcessActivity;
pub use allocation::{Allocation, Exclusion, FileAccess, Limits, Named, NamedGpu, NamedInstance, VisibleDevices, open_device_file};
pub use compute_mode::{ComputeAccess, ComputeModeChange};
pub use driver::{DEADLINE, Driver};
pub use environment::{environment, find_program};
pub use error::DriverError;
pub use events::{EventWatch, GpuEvent, Incident};
pub use functions::LibraryFunction;
pub use identity::{DeviceUuid, NotAUuid};
pub use inventory::{Capability, Gpu, Inventory};
pub use left_out::{LeftOut, Unfit};
pub use limit_calls::{LimitedUse, MemoryLimits};
pub use liveness::{process_started, process_state};
pub use monitor::{Condition, Monitor, Observation};
pub use ownership::{Ownership, ownership};
pub use pci::{NotAnAddress, PciAddress};
pub use power_limit::PowerLimitChange;
pub use processes::{GpuProcess, ProcessKind};
pub use reading::Reading;
pub use throttling::Throttling;
pub use topology::topology;
pub use xid::{Blame, Xid};
