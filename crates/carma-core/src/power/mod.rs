//! Power: what GPUs will draw by what runs on them.
//!
//! Each job takes a share of what is left between what a GPU draws and the most it can draw:
//!
//! ```text
//! draw = idle + (limit - idle) * (1 - product of (1 - share))      but no more than the limit that is set
//! ```
//!
//! What a GPU is measured to draw beyond that counts as one more share. That sharing slows jobs down is left out, so that
//! the sum errs on the safe side.

mod load;
mod range;

pub(crate) use load::Load;
pub use range::PowerRange;
