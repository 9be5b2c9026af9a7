//! What would this policy have done? A discrete-event simulation around the decision core.
//!
//! The scheduler under test is [`carma_core::Scheduler`] itself, and it sees what a manager would see: submissions, estimates,
//! telemetry, exits. What the simulated GPUs do to jobs is in [`Catalogue`] (measured facts) and in the models of
//! interference and power.

mod catalogue;
mod compare;
pub mod draw;
mod hardware;
mod interference;
pub mod report;
mod search;
mod simulation;
mod summary;
mod tables;
pub mod trace;
mod users;
mod validate;

pub use catalogue::{Catalogue, CatalogueError, RankProfile, Workload, WorkloadId};
pub use compare::*;
pub use hardware::*;
pub use interference::*;
pub use search::{Aim, UnknownAim};
pub use simulation::*;
pub use summary::{RunSummary, mean, percentile};
pub use tables::TableError;
pub use trace::{Trace, TraceJob};
pub use users::UserSummary;
pub use validate::*;
