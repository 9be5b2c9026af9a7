//! What was seen of GPUs over time: the last minutes look by look, longer ago minute by minute.

use carma_core::{AttemptId, DeviceId, MiB, UtilisationOverTime, Watts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::rows::GpuStay;
use crate::samples::MinuteMean;
use crate::units::UnixMillis;

/// Which looks at GPUs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RecentQuery {
    /// Later than this; unset: all that are kept, which is those of ten minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Of this GPU alone, as `carma gpus` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Maximum number of samples of each GPU, evenly spaced. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
}

/// The last looks at a GPU, a column for each thing that is seen; all columns are as long as `at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecentSamples {
    /// Which GPU.
    pub device: DeviceId,
    /// The time of the sample.
    pub at: Vec<UnixMillis>,
    /// Memory in use by all processes.
    pub memory: Vec<MiB>,
    /// How busy it was: a column for each metric, to three decimals.
    pub utilisation: UtilisationOverTime,
    /// Power drawn.
    pub power: Vec<Option<Watts>>,
    /// Our jobs that were on it.
    pub tenants: Vec<RecentTenant>,
}

/// One of our jobs, over the same looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentTenant {
    /// Which attempt.
    pub attempt: AttemptId,
    /// Memory it had at each look; unset where it was not there, or the driver does not tell.
    pub memory: Vec<Option<MiB>>,
}

/// What a GPU did, and who was on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuTimeline {
    /// From when.
    pub since: UnixMillis,
    /// Until when.
    pub until: UnixMillis,
    /// How busy it was; of more than a day, means of several minutes, by the first of them.
    pub minutes: Vec<MinuteMean>,
    /// Those who were on it, by when they were launched.
    pub stays: Vec<GpuStay>,
}
