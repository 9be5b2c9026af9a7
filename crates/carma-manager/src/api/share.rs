//! The fair share of users.

use carma_core::ShareReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user in a group. Among users with waiting jobs, the group with the lowest usage per share is next, and in it the user with the lowest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShareRow {
    /// The user.
    pub uid: u32,
    /// The user's name; the number, if the manager's host does not know the user.
    #[serde(default)]
    pub user: String,
    /// The group that the use counts for.
    pub gid: u32,
    /// The group's name, likewise.
    #[serde(default)]
    pub group: String,
    /// The configured share within the group.
    pub share: f64,
    /// The configured share of the group.
    pub group_share: f64,
    /// GPU-seconds used so far; older ones count less.
    pub gpu_seconds: f64,
    /// GPUs in use now, counted by the used part of each.
    pub gpus: f64,
    /// GPU-seconds that running jobs are expected to still use.
    pub committed: f64,
    /// Used and committed GPU-seconds, divided by the share.
    #[serde(alias = "standing")]
    pub usage_per_share: f64,
    /// The same for the group.
    #[serde(alias = "group_standing")]
    pub group_usage_per_share: f64,
}

impl From<ShareReport> for ShareRow {
    fn from(report: ShareReport) -> Self {
        let ShareReport { past, share, group_share, gpus, committed, usage_per_share, group_usage_per_share } = report;
        let (uid, gid, gpu_seconds) = (past.user.0, past.group.0, past.gpu_seconds);
        let (user, group) = (uid.to_string(), gid.to_string());
        Self { uid, user, gid, group, share, group_share, gpu_seconds, gpus, committed, usage_per_share, group_usage_per_share }
    }
}
