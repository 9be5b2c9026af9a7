//! The same jobs under other settings: they are replayed in the simulator.

use carma_core::Seconds;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::units::{Joules, UnixMillis};

/// Which jobs to replay, and under which policies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct WhatIfQuery {
    /// Jobs submitted at this time or later; unset: a day before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Jobs submitted before this time; unset: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Policies, separated by commas; unset: a small selection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<String>,
}

/// The real run of the jobs, and simulated runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// Number of replayed jobs.
    pub jobs: u64,
    /// Why other jobs were not replayed, as text.
    pub left_out: Vec<String>,
    /// The real run.
    pub measured: WhatIfRun,
    /// The simulated run under the present policy. Its difference from the real run shows how accurate the simulation is.
    pub simulated: WhatIfRun,
    /// Simulated runs under other policies.
    pub others: Vec<WhatIfRun>,
}

/// The results of a run under some settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfRun {
    /// The policy.
    pub policy: String,
    /// From the first submission to the last end.
    pub makespan: Seconds,
    /// Mean time from submission to the (last) start.
    pub wait: Seconds,
    /// Mean time from submission to the end.
    pub completion: Seconds,
    /// 95th percentile of the time from submission to the end.
    pub completion_p95: Seconds,
    /// Energy of all GPUs.
    pub energy: Option<Joules>,
    /// Attempts that ran out of memory.
    pub out_of_memory: f64,
}
