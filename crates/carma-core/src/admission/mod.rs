//! Admission: may this job go to this device now? Every "no" is an [`Obstacle`](crate::Obstacle) that can be shown.

mod demand;
mod host_checks;
mod job_checks;
mod power_checks;
mod reservation;
mod time_checks;

pub(crate) use demand::{Demand, RankNeed, usable_devices};
pub(crate) use host_checks::{HostReservation, host_obstacles, host_takes, least_lacking};
pub(crate) use job_checks::{JobQuestion, first_job_obstacle, job_obstacles, mode_objection};
pub(crate) use power_checks::power_objection;
pub use reservation::HeadReservation;
pub(crate) use reservation::JobEnd;
pub(crate) use time_checks::{closes_at, lasts, may_last};
