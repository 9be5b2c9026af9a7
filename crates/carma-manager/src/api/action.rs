//! Submitting jobs, and what can be done to them.

use carma_core::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::JobChange;

/// Jobs that were accepted and written down: they are not lost any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// Their numbers, in the order asked for. The first is also the array's.
    pub jobs: Vec<JobId>,
    /// Notes for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Something that can be done to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAction {
    /// End it.
    Cancel,
    /// Keep it back.
    Hold,
    /// Let it wait again.
    Release,
    /// Stop it, after a checkpoint if it can, and put it back.
    Requeue,
    /// Change what was asked for.
    Change(JobChange),
}

/// What was done, once it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ActionResult {
    /// Jobs it was done to.
    pub done: Vec<JobId>,
    /// Jobs it could not be done to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<ActionFailure>,
}

/// A job that something could not be done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionFailure {
    /// Which.
    pub job: JobId,
    /// Why.
    pub reason: String,
}
