//! Discrete-event simulation around the decision core: evaluates a policy on a trace.
//!
//! The scheduler under test is [`carma_core::Scheduler`] itself. It sees what a manager sees: submissions, estimates, telemetry,
//! exits. The behaviour of jobs on simulated GPUs comes from [`Catalogue`] (measured facts) and from the models of interference
//! and power.

mod catalogue;
mod compare;
mod hardware;
mod interference;
mod lookahead;
mod origin;
mod random;
pub mod report;
mod search;
mod simulation;
pub mod suite;
mod summary;
mod tables;
pub mod trace;
mod users;
mod validate;

pub use catalogue::{Catalogue, CatalogueError, RankProfile, Workload, WorkloadId};
pub use compare::*;
pub use hardware::*;
pub use interference::*;
pub use lookahead::{Assumptions, Future, Lookahead};
pub use origin::{Input, Origin, PolicyOrigin};
pub use search::{Aim, UnknownAim};
pub use simulation::*;
pub use summary::RunSummary;
pub use tables::TableError;
pub use trace::{Trace, TraceJob};
pub use users::UserSummary;
pub use validate::*;
