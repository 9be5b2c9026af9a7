//! The history of jobs.

use carma_core::{ArrayId, JobId, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::ending::OutcomeFilter;
use crate::phase::Phase;
use crate::units::UnixMillis;

/// Which jobs to return.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct HistoryQuery {
    /// Only jobs of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Only jobs in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Phase>,
    /// Only jobs that ended like this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeFilter>,
    /// Only jobs with this in their name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only jobs with this in their name or in the name of their user, or as their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only jobs of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayId>,
    /// Only jobs submitted at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only jobs submitted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Only jobs that come after this one in the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<JobId>,
    /// The order. An export is always by number.
    #[serde(skip_serializing_if = "HistoryOrder::is_usual")]
    pub order: HistoryOrder,
    /// Maximum number of jobs, up to 1,000. Default: 100. An export has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The order of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryOrder {
    /// The highest number first.
    #[default]
    Number,
    /// Finished jobs only, the last to end first.
    Ended,
}

impl HistoryOrder {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
