//! Why a job waits, and what would happen to one that is submitted.

use carma_core::{DeviceAnswer, HostAnswer, JobId, Placement, State, WaitReason};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EstimateDetail;

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: State,
    /// What holds it back, for programs.
    pub reason: WaitReason,
    /// What holds it back, in a sentence.
    pub summary: String,
    /// What stands in the way on each GPU.
    pub devices: Vec<DeviceWhy>,
    /// What stands in the way on each host, for a job without GPUs.
    #[serde(default)]
    pub hosts: Vec<HostWhy>,
    /// The summary and all that stands in the way, as a terminal shows it.
    pub text: String,
}

/// What one GPU says to a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceWhy {
    /// For programs.
    #[serde(flatten)]
    pub answer: DeviceAnswer,
    /// For people, a sentence each.
    pub texts: Vec<String>,
}

/// What one host says to a job without GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostWhy {
    /// For programs.
    #[serde(flatten)]
    pub answer: HostAnswer,
    /// For people, a sentence each.
    pub texts: Vec<String>,
}

/// The predicted placement of a job that is submitted now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// What is expected of it.
    pub estimate: EstimateDetail,
    /// Where it would start at once.
    pub placement: Option<Placement>,
    /// Why it would wait, where it would.
    pub why: Option<Why>,
}
