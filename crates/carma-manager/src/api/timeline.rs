//! GPUs over time: single samples of the last minutes, means of older minutes.

use carma_core::{AttemptId, DeviceId, MiB, UtilisationOverTime, Watts};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::rows::GpuStay;
use crate::samples::MinuteMean;
use crate::units::UnixMillis;

/// Which samples of GPUs to return.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct RecentQuery {
    /// Only samples after this time; unset: all, of the last ten minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only of this GPU, by its name in `carma gpus`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Maximum number of samples of each GPU, evenly spaced. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
}

/// The last samples of a GPU, as columns of the same length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecentSamples {
    /// The GPU.
    pub device: DeviceId,
    /// The time of the sample.
    pub at: Vec<UnixMillis>,
    /// Memory in use by all processes.
    pub memory: Vec<MiB>,
    /// Utilisation: a column per metric, to three decimals.
    pub utilisation: UtilisationOverTime,
    /// Power drawn.
    pub power: Vec<Option<Watts>>,
    /// Jobs of this manager on it.
    pub tenants: Vec<RecentTenant>,
}

/// A job of this manager, over the same samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecentTenant {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its memory in each sample; unset if it was not there, or the driver does not report it.
    pub memory: Vec<Option<MiB>>,
}

/// The utilisation of a GPU over time, and the attempts on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuTimeline {
    /// Start of the period.
    pub since: UnixMillis,
    /// End of the period.
    pub until: UnixMillis,
    /// Means per minute; for more than a day, means of several minutes, dated by the first.
    pub minutes: Vec<MinuteMean>,
    /// The attempts on it, by launch time; of more than 1,000, the longest in the period.
    pub stays: Vec<GpuStay>,
}
