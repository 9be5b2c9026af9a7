//! One user: jobs, GPU time, energy and fair share.

use carma_core::{MiB, Quota, QuotaUse};
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
    /// The quota.
    #[serde(default)]
    #[schema(required = true)]
    pub quota: QuotaDetail,
}

/// What a user's running jobs use, and how much they may use at once. An unset limit does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct QuotaDetail {
    /// Running jobs.
    pub jobs: u32,
    /// Maximum number of running jobs.
    pub jobs_limit: Option<u32>,
    /// GPUs that they hold. A shared GPU counts once for each of them.
    pub gpus: u32,
    /// Maximum number of these.
    pub gpus_limit: Option<u32>,
    /// GPU memory that is reserved for them.
    pub memory: MiB,
    /// Maximum of this memory.
    pub memory_limit: Option<MiB>,
}

impl QuotaDetail {
    /// A quota and its use.
    pub fn new(quota: Quota, used: QuotaUse) -> Self {
        let Quota { jobs: jobs_limit, gpus: gpus_limit, memory: memory_limit } = quota;
        let QuotaUse { jobs, gpus, memory } = used;
        Self { jobs, jobs_limit, gpus, gpus_limit, memory, memory_limit }
    }

    /// Whether anything is limited.
    pub const fn limits(&self) -> bool {
        self.jobs_limit.is_some() || self.gpus_limit.is_some() || self.memory_limit.is_some()
    }
}
