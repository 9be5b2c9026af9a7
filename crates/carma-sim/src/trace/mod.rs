//! Traces: who submitted what, and when. Read from the formats of the field, analysed, sampled, mapped onto workloads,
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
pub use formats::{RadNeeds, RadTask};
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
    /// The trace's own name for it.
    pub name: String,
    /// When it was submitted, counted from the trace's own zero; where the trace has dates, from its first submission.
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
    /// How many of the source's jobs were left out, and why.
    pub skipped: BTreeMap<Skip, u64>,
}

/// Why a job of a log is not in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// It asked for no GPU.
    NoGpu,
    /// It was never started, or took no time.
    NeverRan,
    /// The log ends before it does.
    Unfinished,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGpu => "asked for no GPU",
            Self::NeverRan => "never ran",
            Self::Unfinished => "had not ended",
        })
    }
}
