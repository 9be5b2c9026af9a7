//! Traces: who submitted what, and when.

use carma_core::Seconds;

use crate::catalogue::WorkloadId;

/// A job of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceJob {
    /// The trace's own name for it.
    pub name: String,
    /// When it was submitted, counted from the first submission of the trace it was read from.
    pub submitted: Seconds,
    /// GPUs it asked for, at least 1.
    pub gpus: u32,
    /// What it runs, where the trace says.
    pub workload: Option<WorkloadId>,
    /// Its own time alone on its GPUs, where the trace says; else the workload's.
    pub duration: Option<Seconds>,
    /// Whose it is: a user or a virtual cluster.
    pub owner: Option<String>,
}

/// Jobs in order of submission.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The jobs.
    pub jobs: Vec<TraceJob>,
}
