//! What the scheduler wants done, each with its reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::{Idle, Outcome, Placement, Stall, StopReason, Verdict};
use crate::modes::ModeChoice;
use crate::obstacle::PlacementKind;
use crate::sharing::GpuMode;
use crate::units::{MiB, Watts};
use crate::{AttemptId, DeviceId, JobId};

/// Something for the driver to do: the manager, the emulator or the simulator.
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
        /// The signal.
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
    /// A running job is idle, or works again. The driver only reports it.
    Idle {
        /// Which.
        job: JobId,
        /// How it is idle; unset: it works again.
        idle: Option<Idle>,
    },
    /// A running job hangs or is slow, or makes progress again. The driver only reports it.
    Stall {
        /// Which.
        job: JobId,
        /// How; unset: it makes progress.
        stall: Option<Stall>,
    },
    /// The job waits again. The driver only reports it.
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
    /// The job is over; the outcome has the reason.
    Finish {
        /// Which.
        job: JobId,
        /// How it ended.
        outcome: Outcome,
    },
    /// Switch a GPU to another sharing mode. No attempt of ours is on it, and none is placed there until the driver answers with [`Event::GpuModeChanged`] or
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
            Self::Needed(job) => write!(f, "{job} waits and cannot run in the present mode"),
        }
    }
}

/// Why a job was launched where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LaunchReason {
    /// How it got onto its devices; unset for jobs without.
    #[serde(alias = "way", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<PlacementKind>,
    /// The head of the queue, where the job was let past it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<JobId>,
}

/// A signal to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// Its attempt ended this way, and it is tried again.
    After(Verdict),
    /// A user requested it.
    Requested,
    /// Its time slice was over, and other jobs waited.
    #[serde(alias = "slot_over")]
    TimeSliceOver,
    /// It is to run elsewhere.
    Moved,
    /// Its server ends soon.
    ServerEnding,
    /// It used memory that was reserved for other jobs.
    Borrowed,
    /// It hung, and was stopped for that.
    Hung,
}
