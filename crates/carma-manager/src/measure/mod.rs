//! The usage of GPUs by attempts: memory, activity and energy, also if several share one.
//!
//! ```text
//!  readings, counters, process owners ─► UsageSample ─► Meter (can be saved) ─► Measurement ─► history of estimates
//! ```

mod energy;
mod gap;
mod measurement;
mod meter;
mod over_time;
mod share;
mod usage;
mod usage_sample;

pub use energy::Millijoules;
pub use gap::Gap;
pub use measurement::Measurement;
pub use meter::{DeviceEnergy, Meter};
pub use over_time::OverTime;
pub use share::Basis;
pub use usage::{Level, Usage};
pub use usage_sample::{GpuConsumer, Holder, UsageSample};
