//! The handle of the engine: other threads send questions through a channel and await the answers.

use std::io;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use carma_core::{AttemptId, DeviceId, JobId, Settings, UserId};
use tokio::sync::{broadcast, oneshot};

use super::accounting::recent::{Recent, SampleFilter};
use super::decide::{Reply, SharedClock};
use super::input::Input;
use super::jobs_action::JobsAction;
use super::question::{ClusterQuestion, Question, Unfinished};
use super::task::Task;
use crate::agents::AgentExecutor;
use crate::api::{
    ActionResult, ChannelTest, DrainResult, Forecast, GpuDetail, JobAction, NewPool, Notification, PoolChange, PoolDetail, PoolTest,
    Problem, ProblemKind, Queue, QueueQuery, QuotaDetail, RecentSamples, ServerDetail, ShareRow, Shutdown, Status, Submitted, Update, Why,
};
use crate::cluster::PoolName;
use crate::configuration::Sources;
use crate::heartbeat::{Heartbeats, Part, Stuck};
use crate::measure::Measurement;
use crate::metrics::Facts;
use crate::request::{JobRequest, Owner};
use crate::store::{MinuteMean, UnixMillis, UnixMinute};
use crate::submission::ValidJobs;
use crate::submission_key::SubmissionKey;

/// The engine, for other threads.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) inputs: Sender<Input>,
    /// Who asks: users take turns.
    pub(crate) user: u32,
    pub(crate) updates: broadcast::Sender<(UnixMillis, Update)>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) clock: SharedClock,
    pub(crate) heartbeats: Heartbeats,
    /// Set when the engine has started.
    pub(crate) agents: Arc<OnceLock<Arc<AgentExecutor>>>,
    /// Keys of the file that were changed, and that need a restart.
    pub(crate) needs_restart: Arc<Mutex<Vec<String>>>,
}

impl Handle {
    /// The engine for a user, whose questions it answers in turn with those of others.
    pub(crate) fn of(&self, user: u32) -> Self {
        Self { user, ..self.clone() }
    }

    /// Accepts jobs of a user, all or none: one, or those of one array or sweep. Answered after the commit.
    /// Dependencies must be given by job number. A key that this user gave before gets the first answer again, and creates nothing.
    pub async fn submit(&self, owner: Owner, jobs: ValidJobs, key: Option<SubmissionKey>) -> Result<Submitted, Problem> {
        self.of(owner.uid).ask(|reply| Question::Submit { owner, jobs, key, reply }).await
    }

    /// Where jobs would run if they were submitted now.
    pub async fn forecast(&self, owner: Owner, jobs: ValidJobs) -> Result<Vec<Forecast>, Problem> {
        self.of(owner.uid).ask(|reply| Question::Forecast { owner, jobs, reply }).await
    }

    /// Changes jobs for an authorised user, piece by piece. Answered when all of them are written.
    pub async fn act(&self, jobs: Vec<JobId>, action: JobAction, by: String) -> Result<ActionResult, Problem> {
        self.assign(|reply| Task::Action(Box::new(JobsAction::new(jobs, action, by, reply)))).await
    }

    /// Drains a device, or resumes it.
    pub async fn drain(&self, device: DeviceId, drained: bool, by: String) -> Result<DrainResult, Problem> {
        self.ask(|reply| Question::Drain { device, drained, by, reply }).await
    }

    /// Why a job waits.
    pub async fn why(&self, job: JobId) -> Result<Why, Problem> {
        self.ask(|reply| Question::Why { job, reply }).await
    }

    /// Why nothing here, with all pools, could ever run such a job.
    pub async fn never_runs(&self, owner: Owner, request: JobRequest) -> Result<Option<String>, Problem> {
        self.ask(|reply| Question::NeverRuns { owner, request: Box::new(request), reply }).await
    }

    /// Unfinished jobs.
    pub async fn queue(&self, query: QueueQuery) -> Result<Queue, Problem> {
        self.ask(|reply| Question::Queue { query, reply }).await
    }

    /// All devices and the jobs on them.
    pub async fn gpus(&self) -> Result<Vec<GpuDetail>, Problem> {
        self.ask(|reply| Question::Gpus { reply }).await
    }

    /// The users' fair shares.
    pub async fn shares(&self) -> Result<Vec<ShareRow>, Problem> {
        self.ask(|reply| Question::Shares { reply }).await
    }

    /// What a user may use at once, and what the user's running jobs use.
    pub async fn quota(&self, user: UserId) -> Result<QuotaDetail, Problem> {
        self.ask(|reply| Question::Quota { user, reply }).await
    }

    /// The manager's wall clock, which dates everything it reports.
    pub fn now(&self) -> UnixMillis {
        self.clock.wall()
    }

    /// The last minutes of GPUs, sample by sample. The engine is not asked.
    pub(crate) fn recent(&self, filter: SampleFilter) -> Vec<RecentSamples> {
        self.recent.samples(filter)
    }

    /// Minutes of a GPU, some of which may not be in the store yet.
    pub(crate) fn latest_minutes(&self, device: DeviceId, span: &Range<UnixMinute>) -> Vec<MinuteMean> {
        self.recent.minutes(device, span)
    }

    /// The usage of the running attempt of a job so far; none if none runs.
    pub async fn so_far(&self, job: JobId) -> Result<Option<Measurement>, Problem> {
        Ok(self.unfinished(job).await?.so_far)
    }

    /// The usage of the running attempt of a job so far, and what is predicted of the job; nothing if it is over.
    pub(crate) async fn unfinished(&self, job: JobId) -> Result<Unfinished, Problem> {
        self.ask(|reply| Question::Unfinished { job, reply }).await
    }

    /// The status of the manager.
    pub async fn status(&self) -> Result<Status, Problem> {
        self.ask(|reply| Question::Status { reply }).await
    }

    /// Signs of life of the manager's parts, for the watchdog.
    pub fn heartbeats(&self) -> &Heartbeats {
        &self.heartbeats
    }

    /// How long the engine has not responded; none if it responds. Questions wait meanwhile.
    pub(crate) fn stuck(&self) -> Option<Stuck> {
        // Without the writer, the engine waits for its batch, and still answers.
        self.heartbeats.stuck().find(|stuck| stuck.part == Part::Engine)
    }

    /// The facts for metrics.
    pub async fn facts(&self) -> Result<Facts, Problem> {
        self.ask(|reply| Question::Facts { reply }).await
    }

    /// The settings of decisions in force, and where the given keys come from.
    pub async fn settings(&self) -> Result<(Settings, Sources), Problem> {
        self.ask(|reply| Question::Settings { reply }).await
    }

    /// Changes the settings.
    pub async fn configure(&self, settings: Settings, given: Sources) -> Result<(), Problem> {
        self.ask(|reply| Question::Configure { settings: Box::new(settings), given, reply }).await
    }

    /// Stores valid notifications of a user. Answered after the commit.
    pub async fn set_notifications(&self, uid: u32, notifications: Vec<Notification>) -> Result<(), Problem> {
        self.of(uid).ask(|reply| Question::Notify { uid, notifications, reply }).await
    }

    /// Sends a test message over all channels of a user. Returns the results.
    pub async fn try_notifications(&self, owner: Owner) -> Result<Vec<ChannelTest>, Problem> {
        self.of(owner.uid).ask(|reply| Question::TryNotifications { owner, reply }).await
    }

    /// Remembers keys that were changed and need a restart, for the status.
    pub(crate) fn note_restart(&self, keys: Vec<String>) {
        *self.needs_restart.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// That keys need a restart, if some do.
    pub(crate) fn restart_needed(&self) -> Option<String> {
        let keys = self.needs_restart.lock().unwrap_or_else(PoisonError::into_inner);
        (!keys.is_empty()).then(|| format!("changed keys of the configuration need a restart of the manager: {}", keys.join(", ")))
    }

    /// Stops the manager. Answered at once.
    pub async fn shutdown(&self, shutdown: Shutdown) -> Result<(), Problem> {
        self.ask(|reply| Question::Shutdown { shutdown, reply }).await
    }

    /// The terminal of an attempt, if it runs on the server of an agent.
    pub(crate) fn remote_terminal(&self, attempt: AttemptId) -> Option<io::Result<UnixStream>> {
        self.agents.get()?.open_terminal(attempt)
    }

    /// The servers of agents.
    pub async fn servers(&self) -> Result<Vec<ServerDetail>, Problem> {
        self.ask(|reply| Question::Cluster(ClusterQuestion::Servers { reply })).await
    }

    /// The pools, and their pilots.
    pub async fn pools(&self) -> Result<Vec<PoolDetail>, Problem> {
        self.ask(|reply| Question::Cluster(ClusterQuestion::Pools { reply })).await
    }

    /// Adds a pool. Answered after the commit.
    pub async fn add_pool(&self, new: NewPool, by: String) -> Result<(), Problem> {
        self.ask(|reply| Question::Cluster(ClusterQuestion::Add { new: Box::new(new), by, reply })).await
    }

    /// Changes a pool. Answered after the commit.
    pub async fn change_pool(&self, pool: PoolName, change: PoolChange, by: String) -> Result<(), Problem> {
        self.ask(|reply| Question::Cluster(ClusterQuestion::Change { pool, change, by, reply })).await
    }

    /// Asks the batch system whether it would accept a pilot of a pool.
    pub async fn test_pool(&self, pool: PoolName) -> Result<PoolTest, Problem> {
        self.ask(|reply| Question::Cluster(ClusterQuestion::Test { pool, reply })).await
    }

    /// Updates from now on.
    pub fn updates(&self) -> broadcast::Receiver<(UnixMillis, Update)> {
        self.updates.subscribe()
    }

    async fn ask<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, Problem> {
        self.assign(|reply| Task::Question(question(reply))).await
    }

    async fn assign<T>(&self, task: impl FnOnce(Reply<T>) -> Task) -> Result<T, Problem> {
        let gone = || ProblemKind::Unavailable.because("the manager is stopping");
        let (reply, answer) = oneshot::channel();
        self.inputs.send(Input::Task { user: self.user, task: task(reply) }).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
