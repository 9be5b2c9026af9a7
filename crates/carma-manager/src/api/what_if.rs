//! What would have become of the same jobs by other rules: they are replayed in the simulator.

use carma_core::Seconds;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::units::{Joules, UnixMillis};

/// Which jobs are replayed, and by which rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct WhatIfQuery {
    /// Submitted at this time or later; unset: within a day before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Submitted before this time; unset: until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Policies, separated by commas; unset: a few that differ much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies: Option<String>,
}

/// The real run of the jobs beside simulated ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// The jobs that were replayed.
    pub jobs: u64,
    /// Those that were not, and why, for people.
    pub left_out: Vec<String>,
    /// What was measured of them.
    pub measured: WhatIfRun,
    /// What the simulator makes of them by the rules in force: how far this is from what was measured tells how far to trust the rest.
    pub simulated: WhatIfRun,
    /// What it makes of them by other rules.
    pub others: Vec<WhatIfRun>,
}

/// The results of a run under some settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfRun {
    /// The rules: a policy's name.
    pub policy: String,
    /// From the first submission to the last end.
    pub makespan: Seconds,
    /// Mean time from submission to the (last) start.
    pub wait: Seconds,
    /// Mean time from submission to the end.
    pub completion: Seconds,
    /// The time that one in twenty jobs took longer than, from submission to the end.
    pub completion_p95: Seconds,
    /// Energy of all GPUs.
    pub energy: Option<Joules>,
    /// Attempts that ran out of memory.
    pub out_of_memory: f64,
}
