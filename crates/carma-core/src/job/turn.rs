//! A job's turn in a queue.

use crate::units::Seconds;

/// A job's turn among jobs of its priority.
///
/// No job starves: let `work` be a job's GPU-seconds (expected or used, by the order). No job that was submitted more than
/// `work / ageing` seconds later goes before it. In the order of submission no later job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Turn {
    /// Less is sooner. A second of waiting outweighs `ageing` seconds of work at any time, so it is enough to add when
    /// the job was submitted, and nothing has to be sorted again as time passes.
    pub rank: u64,
    /// GPU time that it should take from its user's share.
    pub cost: Seconds,
    /// How long it should run still.
    pub length: Seconds,
}
