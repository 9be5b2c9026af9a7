//! One user: jobs, GPU time, energy and fair share.

use std::collections::BTreeMap;

use carma_core::Seconds;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ShareRow;
use crate::phase::Phase;
use crate::units::{Joules, UnixMillis};

/// The period that sums are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct UsageQuery {
    /// Only what ended at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only what ended before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

/// A user's jobs, and what they took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserSummary {
    /// The user.
    pub uid: u32,
    /// The user's name; the number, if the manager's host does not know the user.
    pub name: String,
    /// Unfinished jobs by state.
    pub unfinished: BTreeMap<Phase, u64>,
    /// Jobs of the period that succeeded.
    pub succeeded: u64,
    /// Jobs of the period that ended otherwise, except cancelled ones.
    pub failed: u64,
    /// Cancelled jobs of the period.
    pub cancelled: u64,
    /// Time on GPUs of attempts of the period, times their GPUs. A shared GPU counts in full for each job.
    pub gpu_seconds: Seconds,
    /// Energy of attempts of the period.
    pub energy: Joules,
    /// The fair share, in each group of the user; empty without fair share.
    pub shares: Vec<ShareRow>,
}
