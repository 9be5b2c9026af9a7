//! What attempts took of their GPUs: memory, activity and energy, also where several share one.
//!
//! ```text
//!  readings, counters, whose process ─► Look ─► Meter (can be saved) ─► Measurement ─► history of estimates
//! ```

mod energy;
mod look;
mod measurement;
mod meter;
mod share;
mod usage;

pub use energy::Millijoules;
pub use look::{Activity, Holder, Look, Presence};
pub use measurement::Measurement;
pub use meter::{DeviceEnergy, Meter};
pub use share::Basis;
pub use usage::{Level, Usage};
