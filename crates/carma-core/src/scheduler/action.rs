//! What the scheduler wants done, each with its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::admission::Way;
use crate::job::{Idle, Outcome, StopReason, Verdict};
use crate::mapping::Placement;
use crate::modes::{GpuMode, ModeChoice};
use crate::units::{MiB, Watts};
use crate::{AttemptId, DeviceId, JobId};

/// Something to be done by whoever drives the scheduler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Start an attempt.
    Launch {
        /// Which.
        attempt: AttemptId,
        /// Where, and with which limits.
        placement: Placement,
        /// Why there and now.
        reason: LaunchReason,
    },
    /// Send a signal to an attempt.
    Signal {
        /// Which.
        attempt: AttemptId,
        /// What it is told.
        signal: Signal,
        /// Why.
        reason: StopReason,
    },
    /// Set the most that a GPU may draw, and say so when it is done; unset: what it was before.
    LimitPower {
        /// Which.
        device: DeviceId,
        /// The limit.
        limit: Option<Watts>,
    },
    /// A job that runs is idle, or works again; nothing is to be done but to tell.
    Idle {
        /// Which.
        job: JobId,
        /// How it is idle; unset: it works again.
        idle: Option<Idle>,
    },
    /// The job waits again; nothing is to be done but to tell.
    Requeue {
        /// Which.
        job: JobId,
        /// Its next attempt starts with at least this much memory on each device.
        floor: MiB,
        /// Its next attempt starts on idle devices only.
        whole_gpu: bool,
        /// Why.
        reason: RequeueReason,
    },
    /// The job is over; the outcome says why.
    Finish {
        /// Which.
        job: JobId,
        /// How it ended.
        outcome: Outcome,
    },
    /// Share a GPU in another way; nobody of ours is on it, and nobody comes until this is answered by [`Event::GpuModeChanged`] or
    /// [`Event::ModeRefused`]. Instances come and go before that.
    ///
    /// [`Event::GpuModeChanged`]: crate::Event::GpuModeChanged
    /// [`Event::ModeRefused`]: crate::Event::ModeRefused
    SwitchMode {
        /// Which.
        device: DeviceId,
        /// How.
        to: GpuMode,
        /// Why.
        reason: SwitchReason,
    },
}

/// Why a GPU is switched to another mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// The jobs that wait are predicted to gain by it.
    Gain(ModeChoice),
    /// This job waits, and cannot run on it as it is.
    Needed(JobId),
}

impl fmt::Display for SwitchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gain(choice) => choice.fmt(f),
            Self::Needed(job) => write!(f, "{job} waits, and cannot run on it as it is"),
        }
    }
}

/// Why a job was launched where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchReason {
    /// How it got onto its devices; unset for jobs without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The head of the queue, where the job was let past it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<JobId>,
}

/// What an attempt is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Write a checkpoint and end.
    Checkpoint,
    /// End.
    Terminate,
    /// End at once.
    Kill,
}

/// Why a job waits again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// Its attempt ended this way, and it is tried again.
    After(Verdict),
    /// Somebody asked for it.
    Requested,
    /// It has had its slot, and others waited.
    SlotOver,
    /// It is to run elsewhere.
    Moved,
}
