//! Fair share: GPU time that users and groups have used, and GPUs that are kept for users below their share.

mod account;
mod ledger;
mod reserve;

pub(crate) use account::Account;
pub(crate) use ledger::{Charge, Ledger};
pub(crate) use reserve::{FairShareReserve, ReserveBound};
