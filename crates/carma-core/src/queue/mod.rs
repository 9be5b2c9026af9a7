//! Queues: which job is next, which may pass the head, and which waits for something other than GPUs.

mod arrays;
mod backfill;
mod dependencies;
mod fair;
mod quotas;
mod ready;
mod turn;

pub(crate) use arrays::Arrays;
pub(crate) use backfill::{KnownEnds, plan_reservation};
pub(crate) use dependencies::{DependencyResult, Dependents};
pub(crate) use fair::FairQueue;
pub(crate) use quotas::Quotas;
pub(crate) use ready::{Lane, Place, Queues};
pub(crate) use turn::turn_of;
