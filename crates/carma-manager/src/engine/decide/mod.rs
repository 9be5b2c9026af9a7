//! The decision core, its clock, and the batch of changes that follow from its decisions.
//!
//! ```text
//!  event ─► core ─► actions ─► the parts of the engine ─► batch: changes and effects ─► store ─► effects
//! ```

pub(crate) mod batch;
pub(crate) mod core;
mod decisions;

pub(crate) use crate::clock::{Clock, SharedClock};
pub(crate) use batch::{Batch, Effect, Reply};
pub(crate) use core::Core;
pub(crate) use decisions::Decisions;
