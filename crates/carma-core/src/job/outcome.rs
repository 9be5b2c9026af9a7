//! How an attempt ended, and how a job did.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::MiB;
use crate::{ArrayId, JobId, JobLabel};

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Exit code zero.
    Succeeded,
    /// Any other exit.
    Failed {
        /// Its exit code, or 128 plus the signal that ended it.
        code: i32,
    },
    /// It requested GPU memory that was not available.
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
    /// Its server went away under it: preempted, failed, or its time was over.
    ServerLost,
    /// It hung, and was stopped for that.
    Hung,
}

/// Why a running attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its user or an operator cancelled the job.
    Cancelled,
    /// Its time was up.
    TimeLimit,
    /// It is to be put back into the queue.
    Requeued,
    /// Its time slice is over, and other jobs wait for its GPUs.
    #[serde(alias = "slot_over")]
    TimeSliceOver,
    /// It interferes too much with other jobs on its GPU; it was moved to another GPU.
    Moved,
    /// Its GPU is gone.
    GpuLost,
    /// Its MPS server is dead.
    MpsServerDied,
    /// Its server ends soon; it was moved to another GPU.
    ServerEnding,
    /// It hangs.
    Hanging,
    /// It borrows memory that is reserved for other jobs; it is to run again with more.
    Borrows(Borrowing),
}

/// How an attempt used more memory of a GPU than other jobs there could spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Borrowing {
    /// Memory that was reserved for it.
    pub reserved: MiB,
    /// Memory that it used beyond that.
    pub borrowed: MiB,
    /// Memory that was reserved for other jobs, and neither taken by them nor free.
    pub short: MiB,
}

impl Borrowing {
    /// All memory that it used.
    pub fn used(&self) -> MiB {
        self.reserved + self.borrowed
    }
}

/// A sentence without its subject.
impl fmt::Display for Borrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reserved, borrowed, short } = self;
        write!(
            f,
            "used {borrowed} more than the {reserved} reserved for it, and other jobs of the GPU were {short} short of their reserved memory"
        )
    }
}

/// How a job ended, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// Its server went away under it. No job ends by that: it is tried again.
    ServerLost,
    /// It hung: more often than it is restarted, or its user wants no restart.
    Hung,
    /// It was to run only after a job that did not succeed.
    DependencyFailed {
        /// That job.
        on: JobId,
        /// Its array and index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<u64>>))]
        member: Option<(ArrayId, u32)>,
    },
}

impl Outcome {
    /// The end of a job that was to run after this one.
    pub(crate) const fn after_failure_of(on: JobLabel) -> Self {
        Self::DependencyFailed { on: on.job, member: on.member }
    }

    /// Whether the job did its work.
    pub fn succeeded(&self) -> bool {
        *self == Self::Succeeded
    }

    /// The kind of end, without what only this one has: `failed`, `out of memory`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
            Self::OutOfMemory => "out of memory",
            Self::HostOutOfMemory => "host out of memory",
            Self::TimeLimit => "time limit",
            Self::Cancelled => "cancelled",
            Self::GpuLost => "GPU lost",
            Self::MpsServerDied => "MPS server died",
            Self::CouldNotStart { .. } => "could not start",
            Self::SupervisorLost => "supervisor killed",
            Self::ServerLost => "server lost",
            Self::Hung => "hung",
            Self::DependencyFailed { .. } => "dependency failed",
        }
    }

    /// The end in two or three words, for columns: `exit code 3`, `out of memory`.
    pub fn brief(&self) -> String {
        match self {
            Self::Failed { code } => format!("exit code {code}"),
            other => other.kind().to_owned(),
        }
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
            Verdict::ServerLost => Self::ServerLost,
            Verdict::Hung => Self::Hung,
        }
    }
}

/// The end of an attempt in a sentence without its subject. Every text for an end comes from this file.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed { code } => write!(f, "failed with exit code {code}"),
            Self::OutOfMemory => f.write_str("ran out of GPU memory"),
            Self::HostOutOfMemory => f.write_str("was killed because the host ran out of memory"),
            Self::GpuLost => f.write_str("lost its GPU"),
            Self::MpsServerDied => f.write_str("lost its MPS server"),
            Self::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Self::SupervisorLost => f.write_str("was killed together with its supervisor"),
            Self::ServerLost => f.write_str("lost its server"),
            Self::Hung => f.write_str("hung, and was stopped"),
        }
    }
}

/// The end of a job in a sentence without its subject.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => Verdict::Succeeded.fmt(f),
            Self::Failed { code } => Verdict::Failed { code: *code }.fmt(f),
            Self::OutOfMemory => write!(f, "{}, and no GPU with more memory is available", Verdict::OutOfMemory),
            Self::HostOutOfMemory => Verdict::HostOutOfMemory.fmt(f),
            Self::TimeLimit => f.write_str("reached its time limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::GpuLost => write!(f, "{} too often", Verdict::GpuLost),
            Self::MpsServerDied => write!(f, "{} too often", Verdict::MpsServerDied),
            Self::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Self::SupervisorLost => Verdict::SupervisorLost.fmt(f),
            Self::ServerLost => Verdict::ServerLost.fmt(f),
            Self::Hung => Verdict::Hung.fmt(f),
            Self::DependencyFailed { on, member } => {
                write!(f, "not started, because {} did not succeed", JobLabel { job: *on, member: *member })
            }
        }
    }
}
