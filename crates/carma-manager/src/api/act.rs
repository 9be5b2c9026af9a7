//! Submitting jobs, and what can be done to them.

use carma_core::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::{JobChange, JobRequest};
use crate::submission::{InvalidRequest, Parameter, Submission};

/// What is to be accepted, all of it or nothing: one job, or those of one array or sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// What is asked for.
    pub job: JobRequest,
    /// It is an array: a job for each of these indices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Vec<u32>>,
    /// It is a sweep: a job for each combination of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

impl From<Submission> for Submit {
    fn from(submission: Submission) -> Self {
        let (job, array, parameters) = submission.into_parts();
        Self { job, array, parameters }
    }
}

impl TryFrom<Submit> for Submission {
    type Error = InvalidRequest;
    fn try_from(Submit { job, array, parameters }: Submit) -> Result<Self, InvalidRequest> {
        Self::new(job, array, parameters)
    }
}

/// Jobs that were accepted and written down: they are not lost any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// Their numbers, in the order asked for. The first is also the array's.
    #[schema(value_type = Vec<u64>)]
    pub jobs: Vec<JobId>,
    /// What its user might want to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Something that can be done to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
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
pub struct Acted {
    /// Jobs it was done to.
    #[schema(value_type = Vec<u64>)]
    pub done: Vec<JobId>,
    /// Jobs it could not be done to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<NotDone>,
}

/// A job that something could not be done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotDone {
    /// Which.
    #[schema(value_type = u64)]
    pub job: JobId,
    /// Why.
    pub reason: String,
}
