//! How an attempt ended, and how a job did.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::JobId;

/// How one attempt ended, as judged by whoever ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exit code zero.
    Succeeded,
    /// Any other exit.
    Failed {
        /// Its exit code, or 128 plus the signal that ended it.
        code: i32,
    },
    /// It asked for GPU memory that was not there.
    OutOfMemory,
    /// The host ran out of memory and ended it.
    HostOutOfMemory,
    /// Its GPU was lost under it.
    GpuLost,
    /// The MPS server it was a client of died.
    MpsServerDied,
    /// It could not be started.
    CouldNotStart {
        /// Why, for people.
        reason: String,
    },
    /// Its supervisor was killed, and it with it.
    SupervisorLost,
}

/// Why a running attempt was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its user or an operator cancelled the job.
    Cancelled,
    /// Its time was up.
    TimeLimit,
    /// It is to be put back into the queue.
    Requeued,
    /// It has had its slot, and others wait for its GPUs.
    SlotOver,
    /// It and others on its GPU do not go together; it is to run elsewhere.
    Moved,
    /// Its GPU is gone.
    GpuLost,
    /// Its MPS server is dead.
    MpsServerDied,
}

/// How a job ended, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did its work.
    Succeeded,
    /// It failed by itself and had no retry left.
    Failed {
        /// The last exit code.
        code: i32,
    },
    /// It ran out of GPU memory, and the recovery ladder or its retry budget was at its end.
    OutOfMemory,
    /// The host ran out of memory.
    HostOutOfMemory,
    /// It took longer than its limit.
    TimeLimit,
    /// Cancelled.
    Cancelled,
    /// It lost its GPU more often than is tried again.
    GpuLost,
    /// It lost its MPS server more often than is tried again.
    MpsServerDied,
    /// It could not be started.
    CouldNotStart {
        /// Why, for people.
        reason: String,
    },
    /// Its supervisor was killed, and it with it.
    SupervisorLost,
    /// It was to run only after a job that did not succeed.
    DependencyFailed {
        /// That job.
        on: JobId,
    },
}

impl Outcome {
    /// Whether the job did its work.
    pub fn succeeded(&self) -> bool {
        *self == Self::Succeeded
    }
}

/// The outcome of a job that is not tried again after this verdict.
impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Succeeded => Self::Succeeded,
            Verdict::Failed { code } => Self::Failed { code },
            Verdict::OutOfMemory => Self::OutOfMemory,
            Verdict::HostOutOfMemory => Self::HostOutOfMemory,
            Verdict::GpuLost => Self::GpuLost,
            Verdict::MpsServerDied => Self::MpsServerDied,
            Verdict::CouldNotStart { reason } => Self::CouldNotStart { reason },
            Verdict::SupervisorLost => Self::SupervisorLost,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed { code } => write!(f, "failed with exit code {code}"),
            Self::OutOfMemory => f.write_str("ran out of GPU memory, and nothing larger is left to try"),
            Self::HostOutOfMemory => f.write_str("ended because the host ran out of memory"),
            Self::TimeLimit => f.write_str("reached its time limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::GpuLost => f.write_str("lost its GPU too often"),
            Self::MpsServerDied => f.write_str("lost its MPS server too often"),
            Self::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Self::SupervisorLost => f.write_str("ended with its supervisor, which was killed"),
            Self::DependencyFailed { on } => write!(f, "not run, because {on} did not succeed"),
        }
    }
}
