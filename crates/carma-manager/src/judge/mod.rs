//! How an attempt ended, and whose doing it was: a judgement from its exit, its last words, and what its GPUs and its host showed.
//!
//! ```text
//!  stdout, stderr ─► lines ─► findings (words) ─► cause ─┐
//!  exit, stops, GPUs, kernel ────────────────────────────┴─► verdict, because, whose
//! ```

mod cause;
mod evidence;
mod lines;
mod memory;
mod verdict;
mod words;

pub use evidence::{DeviceFacts, Evidence, HostFacts, XidSeen};
pub use verdict::{Blame, Judgement, verdict};
