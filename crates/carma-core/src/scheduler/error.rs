//! Events that cannot be: they change nothing.

use serde::Serialize;
use thiserror::Error;

use crate::config::OverQuota;
use crate::job::{IllegalTransition, SpecError};
use crate::keys::ConfigErrors;
use crate::{AttemptId, DeviceId, JobId, ServerId};

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventError {
    /// The job is not known.
    #[error("{0} is not known")]
    UnknownJob(JobId),
    /// The server is not known.
    #[error("{0} is not known")]
    UnknownServer(ServerId),
    /// The device is not known.
    #[error("device {0} is not known")]
    UnknownDevice(DeviceId),
    /// The job is known already.
    #[error("{0} exists already")]
    DuplicateJob(JobId),
    /// The server is known already.
    #[error("{0} exists already")]
    DuplicateServer(ServerId),
    /// The device is known already.
    #[error("device {0} exists already")]
    DuplicateDevice(DeviceId),
    /// The device's mode and its name contradict each other.
    #[error("device {0}: MIG instances need MIG mode, and whole GPUs must not have it")]
    ModeOfInstance(DeviceId),
    /// The attempt is not the one under way.
    #[error("{0} is not running")]
    NotUnderWay(AttemptId),
    /// The device is in use.
    #[error("device {0} has jobs on it")]
    InUse(DeviceId),
    /// The server is in use.
    #[error("{0} has jobs on it")]
    ServerInUse(ServerId),
    /// The device is not being switched to another mode.
    #[error("device {0} is not being switched")]
    NotSwitching(DeviceId),
    /// The device has no MPS server that could die.
    #[error("device {0} is not in MPS mode")]
    NoMpsServer(DeviceId),
    /// The job depends on an unknown job.
    #[error("{job} depends on {on}, which is not known")]
    UnknownDependency {
        /// The job.
        job: JobId,
        /// What it waits for.
        on: JobId,
    },
    /// The job is not over, or others wait for it.
    #[error("{0} cannot be deleted: it has not ended, or other jobs depend on it")]
    StillNeeded(JobId),
    /// The request makes no sense.
    #[error("{job} cannot be accepted: {error}")]
    Spec {
        /// The job.
        job: JobId,
        /// What is wrong.
        error: SpecError,
    },
    /// The job alone is more than its user may have.
    #[error("{job} can never start: its user's quota is {over}")]
    Quota {
        /// The job.
        job: JobId,
        /// What is too much.
        over: OverQuota,
    },
    /// The job's state does not allow it.
    #[error("{job}: {error}")]
    Transition {
        /// The job.
        job: JobId,
        /// What does not go.
        error: IllegalTransition,
    },
    /// The new rules are wrong.
    #[error("the configuration is unchanged: {0}")]
    Configuration(#[from] ConfigErrors),
}

impl EventError {
    /// What the state machine of this job refuses.
    pub(super) fn transition(job: JobId) -> impl FnOnce(IllegalTransition) -> Self {
        move |error| Self::Transition { job, error }
    }

    /// What is wrong with the request for this job.
    pub(super) fn spec(job: JobId) -> impl FnOnce(SpecError) -> Self {
        move |error| Self::Spec { job, error }
    }
}
