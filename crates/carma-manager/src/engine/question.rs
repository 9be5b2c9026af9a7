//! Questions to the engine, each with the channel of its answer.

use carma_core::{DeviceId, JobId, MiB, Settings, UserId};

use super::decide::Reply;
use crate::api::{
    AttemptUtilisation, ChannelTest, DrainResult, Forecast, GpuDetail, JobPrediction, NewPool, Notification, PoolChange, PoolDetail,
    PoolTest, Queue, QueueQuery, QuotaDetail, ServerDetail, ShareRow, Shutdown, Status, Submitted, Why,
};
use crate::cluster::PoolName;
use crate::configuration::Sources;
use crate::measure::Measurement;
use crate::metrics::Facts;
use crate::request::{JobRequest, Owner};
use crate::submission::ValidJobs;
use crate::submission_key::SubmissionKey;

/// What only the engine knows of an unfinished job.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// The usage of its running attempt so far.
    pub(crate) so_far: Option<Measurement>,
    /// The utilisation of its GPUs by that attempt so far.
    pub(crate) over_time: Vec<AttemptUtilisation>,
    pub(crate) prediction: JobPrediction,
    /// The memory that is reserved for it now.
    pub(crate) reserved: Vec<(DeviceId, MiB)>,
}

/// A question to the engine.
#[derive(Debug)]
pub(crate) enum Question {
    Submit { owner: Owner, jobs: ValidJobs, key: Option<SubmissionKey>, reply: Reply<Submitted> },
    Forecast { owner: Owner, jobs: ValidJobs, reply: Reply<Vec<Forecast>> },
    Drain { device: DeviceId, drained: bool, by: String, reply: Reply<DrainResult> },
    Why { job: JobId, reply: Reply<Why> },
    NeverRuns { owner: Owner, request: Box<JobRequest>, reply: Reply<Option<String>> },
    Queue { query: QueueQuery, reply: Reply<Queue> },
    Gpus { reply: Reply<Vec<GpuDetail>> },
    Shares { reply: Reply<Vec<ShareRow>> },
    Quota { user: UserId, reply: Reply<QuotaDetail> },
    Unfinished { job: JobId, reply: Reply<Unfinished> },
    Status { reply: Reply<Status> },
    Facts { reply: Reply<Facts> },
    Settings { reply: Reply<(Settings, Sources)> },
    Configure { settings: Box<Settings>, given: Sources, reply: Reply<()> },
    Notify { uid: u32, notifications: Vec<Notification>, reply: Reply<()> },
    TryNotifications { owner: Owner, reply: Reply<Vec<ChannelTest>> },
    Cluster(ClusterQuestion),
    Shutdown { shutdown: Shutdown, reply: Reply<()> },
}

/// A question about servers and pools.
#[derive(Debug)]
pub(crate) enum ClusterQuestion {
    Servers { reply: Reply<Vec<ServerDetail>> },
    Pools { reply: Reply<Vec<PoolDetail>> },
    Add { new: Box<NewPool>, by: String, reply: Reply<()> },
    Change { pool: PoolName, change: PoolChange, by: String, reply: Reply<()> },
    Test { pool: PoolName, reply: Reply<PoolTest> },
}
