//! The verdict on an attempt and its cause, from its exit, its logs, its GPUs and its host.
//!
//! ```text
//!  stdout, stderr ─► lines ─► findings (patterns) ─► cause ─┐
//!  exit, stops, GPUs, kernel ───────────────────────────────┴─► verdict, reason, blame
//! ```

mod blame;
mod cause;
mod evidence;
mod limit;
mod lines;
mod memory;
mod patterns;
mod verdict;

pub use blame::Blame;
pub use evidence::{DeviceFacts, Evidence, HostFacts, XidRecord};
pub(crate) use lines::plain;
pub use verdict::{Judgement, verdict};
