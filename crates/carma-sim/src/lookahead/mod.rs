//! What the scheduler would do next: a copy of it is run ahead of time, with the lengths of jobs given. Pure.
//!
//! ```text
//!  copy of the scheduler ─► next: an attempt ends, is seen on its GPUs, or a timer is due ─► events ─► launches ─► ...
//! ```
//!
//! It differs from [`crate::Simulation`] in what it begins with and what it knows: it begins in the middle, with jobs that run, and knows what a manager
//! knows. So jobs interfere as the scheduler itself predicts, and no job runs out of memory.

mod ahead;
mod shown;

use std::collections::BTreeMap;

use carma_core::{JobId, JobSpec, Seconds, Time};

pub use ahead::Lookahead;

/// What is given for one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumptions {
    /// From a launch to the first activity on a GPU.
    pub start_up: Seconds,
    /// Predicted interference times this.
    pub interference: f64,
    /// How far ahead to look.
    pub horizon: Seconds,
    /// The most events: bounds the cost.
    pub steps: usize,
    /// Jobs that will be submitted, in order of time, with names of their own.
    pub arrivals: Vec<(Time, JobSpec)>,
}

impl Default for Assumptions {
    fn default() -> Self {
        let (start_up, horizon) = (Seconds::from_secs(9), Seconds::from_secs(14 * 86_400));
        Self { start_up, interference: 1.0, horizon, steps: 5_000, arrivals: Vec::new() }
    }
}

/// What happened in one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Future {
    /// First launches of jobs that wait now.
    pub starts: BTreeMap<JobId, Time>,
    /// Ends of jobs.
    pub ends: BTreeMap<JobId, Time>,
}
