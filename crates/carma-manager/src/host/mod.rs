//! The host: how much of its CPU, memory and disks is left, and what of it jobs have booked.

mod booking;
mod cgroup;
mod proc;
mod reading;
mod shortage;
mod watch;

pub use booking::{Booking, Claim, Lacking};
pub use proc::Pressure;
pub use reading::{Disk, HostReading};
pub use shortage::{HostChange, HostStanding, Limits, Shortage};
pub use watch::{HostWatch, Unreadable};
