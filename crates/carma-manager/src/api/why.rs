//! Why a job waits, and where a new job would run.

use carma_core::{DeviceAnswer, HostAnswer, JobId, Placement, State, WaitReason};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EstimateDetail, PredictedTime};

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// The job.
    pub job: JobId,
    /// Its state.
    pub state: State,
    /// The reason, for programs.
    pub reason: WaitReason,
    /// The reason, as a sentence.
    pub summary: String,
    /// When it is predicted to start; unset without a basis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<PredictedTime>,
    /// The obstacles on each GPU.
    pub devices: Vec<DeviceWhy>,
    /// The obstacles on each host, for a job without GPUs.
    #[serde(default)]
    pub hosts: Vec<HostWhy>,
    /// What pools of pilots do for the job.
    #[serde(default)]
    pub pools: Vec<String>,
    /// The summary and all obstacles, as text for a terminal.
    pub text: String,
}

/// The obstacles on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceWhy {
    /// For programs.
    #[serde(flatten)]
    pub answer: DeviceAnswer,
    /// As text, one sentence each.
    pub texts: Vec<String>,
}

/// The obstacles on one host for a job without GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostWhy {
    /// For programs.
    #[serde(flatten)]
    pub answer: HostAnswer,
    /// As text, one sentence each.
    pub texts: Vec<String>,
}

/// The predicted placement of a job that is submitted now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forecast {
    /// Its estimate.
    pub estimate: EstimateDetail,
    /// Its placement, if it would start at once.
    pub placement: Option<Placement>,
    /// Why it would wait, otherwise.
    pub why: Option<Why>,
}
