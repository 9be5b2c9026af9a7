//! Jobs of all times.

use carma_core::{ArrayId, JobId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::phase::Phase;
use crate::units::UnixMillis;

/// Which jobs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct HistoryQuery {
    /// Of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// In this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Phase>,
    /// With this in its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With this in its name or in its user's, or as its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayId>,
    /// Submitted at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Submitted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Of a lower number than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<JobId>,
    /// In this order; exports are by number.
    #[serde(skip_serializing_if = "HistoryOrder::is_usual")]
    pub order: HistoryOrder,
    /// Maximum number of jobs, up to 1,000. Default: 100. An export has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Which jobs come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryOrder {
    /// Those of the highest number.
    #[default]
    Number,
    /// Those that ended last; others are left out.
    Ended,
}

impl HistoryOrder {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
