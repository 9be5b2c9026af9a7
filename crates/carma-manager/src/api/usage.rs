//! One user: jobs, GPU time, energy and fair share.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ShareRow;
use crate::rows::UserSummary;
use crate::units::UnixMillis;

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

/// A user's jobs, use of GPUs and fair share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserUsage {
    /// Jobs and use of GPUs.
    #[serde(flatten)]
    pub summary: UserSummary,
    /// The fair share, in each group of the user; empty without fair share.
    pub shares: Vec<ShareRow>,
}
