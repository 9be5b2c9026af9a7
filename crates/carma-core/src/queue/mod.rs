//! Queues: who is next, who may pass, and who waits for something other than GPUs.

mod arrays;
mod backfill;
mod dependencies;
mod quotas;
mod ready;

pub(crate) use arrays::Arrays;
pub use backfill::HeadReservation;
pub(crate) use dependencies::{Dependents, Settled};
pub(crate) use quotas::Quotas;
pub(crate) use ready::{Lane, Place, Queues};
