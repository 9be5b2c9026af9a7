//! The host: how much of its CPU, memory and disks is left.

mod cgroup;
mod proc;
mod reading;
mod shortage;
mod watch;

pub use proc::Pressure;
pub use reading::{Disk, HostReading};
pub use shortage::{HostChange, LimitSettings, Limits, Shortage, ShortageTracker};
pub(crate) use watch::watch;
pub use watch::{HostWatch, Unreadable};
