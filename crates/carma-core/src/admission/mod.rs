//! Admission: may this job go to this device now? Every "no" is an [`Obstacle`] that can be shown.

mod demand;
mod device_checks;
mod host_checks;
mod job_checks;
mod obstacle;

pub(crate) use demand::{Demand, RankNeed, usable_devices};
pub(crate) use device_checks::{device_obstacles, first_device_obstacle, grown_stale};
pub(crate) use host_checks::{HostReservation, host_obstacles, host_takes, least_lacking};
pub(crate) use job_checks::{JobQuestion, first_job_obstacle, job_obstacles, mode_objection};
pub use obstacle::Obstacle;
pub(crate) use obstacle::moment;

use serde::{Deserialize, Serialize};

/// The two ways onto a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It is idle, and the job is alone on it for now.
    Idle,
    /// It is shared.
    Share,
}
