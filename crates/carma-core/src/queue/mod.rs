//! Queues: who is next, who may pass, and who waits for something other than GPUs.

mod arrays;
mod backfill;
mod courtesy;
mod dependencies;
mod fair;
mod ledger;
mod quotas;
mod ready;
mod turn;

pub(crate) use arrays::Arrays;
pub use backfill::HeadReservation;
pub(crate) use courtesy::{Bound, Courtesy};
pub(crate) use dependencies::{Dependents, Settled};
pub(crate) use fair::FairQueue;
pub(crate) use ledger::{Charge, Ledger};
pub(crate) use quotas::Quotas;
pub(crate) use ready::{Lane, Place, Queues};
pub(crate) use turn::Account;
pub use turn::Turn;
