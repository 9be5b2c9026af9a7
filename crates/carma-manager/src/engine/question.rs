//! Questions to the engine, each with the channel of its answer.

use carma_core::{DeviceId, JobId, Settings};

use super::decide::Reply;
use crate::api::{
    ChannelTest, Forecast, GpuDetail, JobPrediction, NewPool, Notification, PoolChange, PoolDetail, PoolTest, Queue, QueueQuery,
    ServerDetail, ShareRow, Shutdown, Status, Submitted, Why,
};
use crate::cluster::PoolName;
use crate::measure::Measurement;
use crate::metrics::Facts;
use crate::request::Owner;
use crate::submission::ValidJobs;
use crate::submission_key::SubmissionKey;

/// What only the engine knows of an unfinished job.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// The usage of its running attempt so far.
    pub(crate) so_far: Option<Measurement>,
    pub(crate) prediction: JobPrediction,
}

/// A question to the engine.
#[derive(Debug)]
pub(crate) enum Question {
    Submit { owner: Owner, jobs: ValidJobs, key: Option<SubmissionKey>, reply: Reply<Submitted> },
    Forecast { owner: Owner, jobs: ValidJobs, reply: Reply<Vec<Forecast>> },
    Drain { device: DeviceId, drained: bool, by: String, reply: Reply<()> },
    Why { job: JobId, reply: Reply<Why> },
    Queue { query: QueueQuery, reply: Reply<Queue> },
    Gpus { reply: Reply<Vec<GpuDetail>> },
    Shares { reply: Reply<Vec<ShareRow>> },
    Unfinished { job: JobId, reply: Reply<Unfinished> },
    Status { reply: Reply<Status> },
    Facts { reply: Reply<Facts> },
    Settings { reply: Reply<Settings> },
    Configure { settings: Box<Settings>, reply: Reply<()> },
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
