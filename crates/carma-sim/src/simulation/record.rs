//! The result of a run.

use carma_core::{Outcome, Time, Verdict};

use super::meter::{GpuTotals, Moment};
use crate::hardware::GpuType;

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRecord {
    /// When it was launched.
    pub launched: Time,
    /// When it ended; unset if the simulation ended first.
    pub ended: Option<Time>,
    /// Its GPUs by rank, as indices into [`Run::gpus`].
    pub gpus: Vec<usize>,
    /// How it ended.
    pub verdict: Option<Verdict>,
    /// It ran out of memory although it kept to its reservation.
    pub victim: bool,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// When it was submitted.
    pub submitted: Time,
    /// Its time alone on whole GPUs of the kind of its last attempt, in seconds.
    pub alone: f64,
    /// All attempts.
    pub attempts: Vec<AttemptRecord>,
    /// When it ended.
    pub ended: Option<Time>,
    /// How it ended; unset if it could never run.
    pub outcome: Option<Outcome>,
    /// What it still waits for at the end of the run, as a sentence.
    pub waits_for: Option<String>,
}

impl JobRecord {
    /// From submission to end.
    pub fn completion(&self) -> Option<f64> {
        self.ended.map(|ended| (ended - self.submitted).get())
    }

    /// Seconds that its attempts ran, failed ones included.
    pub fn execution(&self) -> f64 {
        let ran = |attempt: &AttemptRecord| attempt.ended.map_or(0.0, |ended| (ended - attempt.launched).get());
        self.attempts.iter().map(ran).fold(0.0, std::ops::Add::add)
    }

    /// Seconds that it waited, before the first attempt and between attempts.
    pub fn waiting(&self) -> Option<f64> {
        Some(self.completion()? - self.execution())
    }

    /// Seconds run, failed attempts included, over the time alone on whole GPUs; unset for jobs that did not succeed.
    pub fn slowdown(&self) -> Option<f64> {
        (self.outcome == Some(Outcome::Succeeded)).then(|| self.execution() / self.alone)
    }

    /// Attempts that ran out of GPU memory.
    pub fn out_of_memory(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.verdict == Some(Verdict::OutOfMemory)).count()
    }
}

/// One device of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuRecord {
    /// Its kind.
    pub kind: &'static GpuType,
    /// Its memory: the GPU's, or a MIG instance's part of it.
    pub memory: carma_core::MiB,
    /// Totals over the run.
    pub totals: GpuTotals,
    /// State over time; empty unless requested.
    pub moments: Vec<Moment>,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The trace's jobs, in its order.
    pub jobs: Vec<JobRecord>,
    /// The devices.
    pub gpus: Vec<GpuRecord>,
    /// When the last job ended.
    pub ended: Time,
    /// Events that the scheduler handled.
    pub events: u64,
}
