//! Traces of submissions. Read from published formats, analysed, sampled, mapped onto workloads,
//! generated and written.

mod analysis;
mod draft;
mod error;
mod formats;
mod generate;
mod input;
mod mapping;
mod plots;
mod read;
mod sample;
mod timestamp;
mod write;

pub use analysis::{Analysis, Arrivals, DemandClass, DurationClass, Durations, Hours};
pub use error::{TraceError, TraceProblem};
pub use formats::{RadNeeds, RadTask, formats};
pub use generate::{Generation, Mix, MixError, WeightClass, generate};
pub use input::ReadLimits;
pub use mapping::{DurationRule, map};
pub use sample::{Window, sample, shuffle};
pub use write::sha256;

use std::collections::BTreeMap;
use std::fmt;

use carma_core::Seconds;

use crate::catalogue::{Catalogue, WorkloadId};

/// A job of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceJob {
    /// Its name in the trace.
    pub name: String,
    /// Submission time, from the trace's own zero; for traces with dates, from the first submission.
    pub submitted: Seconds,
    /// Requested GPUs, at least 1.
    pub gpus: u32,
    /// Its workload, if the trace states it.
    pub workload: Option<WorkloadId>,
    /// Its own duration alone on its GPUs, if the trace states it; else the workload's.
    pub duration: Option<Seconds>,
    /// Its owner: a user or a virtual cluster.
    pub owner: Option<String>,
}

impl TraceJob {
    /// Its time alone: its own, or else its workload's.
    pub fn time_alone(&self, catalogue: &Catalogue) -> Option<Seconds> {
        self.duration.or_else(|| self.workload.map(|id| catalogue.get(id).seconds))
    }
}

/// Jobs in order of submission.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The jobs.
    pub jobs: Vec<TraceJob>,
    /// Number of skipped jobs of the source, by reason.
    pub skipped: BTreeMap<Skip, u64>,
}

/// Why a job of a log is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// It requested no GPU.
    NoGpu,
    /// It never started, or took no time.
    NeverRan,
    /// The log ends before the job.
    Unfinished,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGpu => "requested no GPU",
            Self::NeverRan => "never ran",
            Self::Unfinished => "had not ended",
        })
    }
}
