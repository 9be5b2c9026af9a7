//! Power: what GPUs will draw by what runs on them, what a server's budget allows, and whether packing pays.
//!
//! Each job takes a share of what is left between what a GPU draws and the most it can draw:
//!
//! ```text
//! draw = idle + (limit - idle) * (1 - product of (1 - share))      but no more than the limit that is set
//! ```
//!
//! What a GPU is measured to draw beyond that counts as one more share. That sharing slows jobs down is left out, so that
//! the sum errs on the safe side.

mod budget;
mod draw;
mod load;
mod packing;
mod range;

pub(crate) use budget::{could_ever_power, power_objection};
pub(crate) use load::Load;
pub(crate) use packing::packing_pays;
pub use range::PowerRange;
