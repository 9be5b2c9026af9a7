//! Where users stand under fair share.

use carma_core::ShareReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A user as a member of a group. Of those who want something, the lowest group is next, and in it the lowest user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShareRow {
    /// The user.
    pub uid: u32,
    /// The group it is accounted to.
    pub gid: u32,
    /// Its share within its group.
    pub share: f64,
    /// The group's share beside others.
    pub group_share: f64,
    /// GPU-seconds had, of which the older count less.
    pub gpu_seconds: f64,
    /// GPUs it takes now, with what it takes of each.
    pub gpus: f64,
    /// GPU-seconds that its running jobs should still take.
    pub committed: f64,
    /// What it has had and is about to have, over its share.
    pub standing: f64,
    /// The same of its group.
    pub group_standing: f64,
}

impl From<ShareReport> for ShareRow {
    fn from(report: ShareReport) -> Self {
        let ShareReport { past, share, group_share, gpus, committed, standing, group_standing } = report;
        let (uid, gid, gpu_seconds) = (past.user.0, past.group.0, past.gpu_seconds);
        Self { uid, gid, share, group_share, gpu_seconds, gpus, committed, standing, group_standing }
    }
}
