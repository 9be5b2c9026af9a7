//! Results of a submission, and actions on jobs.

use std::collections::BTreeMap;

use carma_core::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::{ArrayPlace, JobChange};

/// Accepted jobs. They are on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// Their numbers, in the order of the submission. The first is also the number of the array.
    pub jobs: Vec<JobId>,
    /// Notes for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What is different in jobs that are submitted once more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resubmission {
    /// The values of variables that looked like secrets: the manager no longer has them once a job is over.
    pub environment: BTreeMap<String, String>,
    /// Only those jobs of an array that did not succeed.
    pub failed: bool,
}

/// An action on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAction {
    /// Cancel it.
    Cancel,
    /// Hold it.
    Hold,
    /// Release it.
    Release,
    /// Stop it, after a checkpoint if it can write one, and queue it again.
    Requeue,
    /// Change its priority or time limit.
    Change(JobChange),
}

/// The result of an action. It is on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ActionResult {
    /// Jobs that were changed.
    pub done: Vec<JobId>,
    /// Jobs that could not be changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<ActionFailure>,
    /// The places of those jobs that belong to an array.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arrays: BTreeMap<JobId, ArrayPlace>,
}

/// A job that an action failed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionFailure {
    /// The job.
    pub job: JobId,
    /// Why.
    pub reason: String,
}
