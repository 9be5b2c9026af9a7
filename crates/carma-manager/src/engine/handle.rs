//! How everybody else talks to the engine: questions through a channel, each with somebody who waits for the answer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use carma_core::{DeviceId, JobId, Settings};
use tokio::sync::{broadcast, oneshot};

use super::clock::ClockFace;
use super::input::Input;
use super::recent::{Recent, Wanted};
use super::submit::AcceptedJobs;
use crate::api::{
    Act, Acted, Forecast, GpuDetail, Notification, Problem, ProblemKind, Queue, QueueQuery, RecentLooks, ShareRow, Shutdown, Status, Tried,
    Update, Why,
};
use crate::measure::Measurement;
use crate::metrics::Facts;
use crate::request::{JobRequest, Owner};
use crate::store::{MinuteMean, UnixMillis, UnixMinute};

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Problem>>;

/// A question to the engine.
#[derive(Debug)]
pub(super) enum Question {
    Submit { owner: Owner, jobs: Vec<JobRequest>, reply: Reply<AcceptedJobs> },
    Forecast { owner: Owner, jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>> },
    Act { jobs: Vec<JobId>, act: Act, by: String, reply: Reply<Acted> },
    Drain { device: DeviceId, drained: bool, by: String, reply: Reply<()> },
    Why { job: JobId, reply: Reply<Why> },
    Queue { query: QueueQuery, reply: Reply<Queue> },
    Gpus { reply: Reply<Vec<GpuDetail>> },
    Shares { reply: Reply<Vec<ShareRow>> },
    SoFar { job: JobId, reply: Reply<Option<Measurement>> },
    Status { reply: Reply<Status> },
    Facts { reply: Reply<Facts> },
    Settings { reply: Reply<Settings> },
    Configure { settings: Box<Settings>, reply: Reply<()> },
    Notify { uid: u32, notifications: Vec<Notification>, reply: Reply<()> },
    TryNotifications { owner: Owner, reply: Reply<Vec<Tried>> },
    Shutdown { shutdown: Shutdown, reply: Reply<()> },
}

/// The engine, as others see it.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(super) inputs: Sender<Input>,
    pub(super) updates: broadcast::Sender<(UnixMillis, Update)>,
    pub(super) recent: Arc<Recent>,
    pub(super) clock: ClockFace,
}

impl Handle {
    /// Accepts jobs of a user, all or none: one, or those of one array or sweep. Answered when they are written down.
    /// The jobs they come after must be named by number.
    pub async fn submit(&self, owner: Owner, jobs: Vec<JobRequest>) -> Result<AcceptedJobs, Problem> {
        self.ask(|reply| Question::Submit { owner, jobs, reply }).await
    }

    /// What would become of jobs that are submitted now.
    pub async fn forecast(&self, owner: Owner, jobs: Vec<JobRequest>) -> Result<Vec<Forecast>, Problem> {
        self.ask(|reply| Question::Forecast { owner, jobs, reply }).await
    }

    /// Does something to jobs, in the name of somebody who may. Answered when it is written down.
    pub async fn act(&self, jobs: Vec<JobId>, act: Act, by: String) -> Result<Acted, Problem> {
        self.ask(|reply| Question::Act { jobs, act, by, reply }).await
    }

    /// Takes a device out of use for new jobs, or back into it.
    pub async fn drain(&self, device: DeviceId, drained: bool, by: String) -> Result<(), Problem> {
        self.ask(|reply| Question::Drain { device, drained, by, reply }).await
    }

    /// Why a job waits.
    pub async fn why(&self, job: JobId) -> Result<Why, Problem> {
        self.ask(|reply| Question::Why { job, reply }).await
    }

    /// Jobs that are not over.
    pub async fn queue(&self, query: QueueQuery) -> Result<Queue, Problem> {
        self.ask(|reply| Question::Queue { query, reply }).await
    }

    /// All devices, and who is on them.
    pub async fn gpus(&self) -> Result<Vec<GpuDetail>, Problem> {
        self.ask(|reply| Question::Gpus { reply }).await
    }

    /// Where users stand under fair share.
    pub async fn shares(&self) -> Result<Vec<ShareRow>, Problem> {
        self.ask(|reply| Question::Shares { reply }).await
    }

    /// The manager's wall clock, by which all that it tells is dated.
    pub fn now(&self) -> UnixMillis {
        self.clock.wall()
    }

    /// The last minutes of GPUs, look by look. The engine is not asked.
    pub(crate) fn recent(&self, wanted: Wanted) -> Vec<RecentLooks> {
        self.recent.looks(wanted)
    }

    /// Minutes of a GPU of which not all need to be in the store yet.
    pub(crate) fn latest_minutes(&self, device: DeviceId, span: &Range<UnixMinute>) -> Vec<MinuteMean> {
        self.recent.minutes(device, span)
    }

    /// What the running attempt of a job has taken so far; none where none runs.
    pub async fn so_far(&self, job: JobId) -> Result<Option<Measurement>, Problem> {
        self.ask(|reply| Question::SoFar { job, reply }).await
    }

    /// How the manager is.
    pub async fn status(&self) -> Result<Status, Problem> {
        self.ask(|reply| Question::Status { reply }).await
    }

    /// All that metrics tell of.
    pub async fn facts(&self) -> Result<Facts, Problem> {
        self.ask(|reply| Question::Facts { reply }).await
    }

    /// The rules in force, as they were written.
    pub async fn settings(&self) -> Result<Settings, Problem> {
        self.ask(|reply| Question::Settings { reply }).await
    }

    /// Changes the rules.
    pub async fn configure(&self, settings: Settings) -> Result<(), Problem> {
        self.ask(|reply| Question::Configure { settings: Box::new(settings), reply }).await
    }

    /// Keeps what a user wants to be told of, which was checked. Answered when it is written down.
    pub async fn set_notifications(&self, uid: u32, notifications: Vec<Notification>) -> Result<(), Problem> {
        self.ask(|reply| Question::Notify { uid, notifications, reply }).await
    }

    /// Tells a user something made up by all their ways, and says what became of it.
    pub async fn try_notifications(&self, owner: Owner) -> Result<Vec<Tried>, Problem> {
        self.ask(|reply| Question::TryNotifications { owner, reply }).await
    }

    /// Ends the manager; answered when it has understood.
    pub async fn shutdown(&self, shutdown: Shutdown) -> Result<(), Problem> {
        self.ask(|reply| Question::Shutdown { shutdown, reply }).await
    }

    /// What changes from now on.
    pub fn updates(&self) -> broadcast::Receiver<(UnixMillis, Update)> {
        self.updates.subscribe()
    }

    async fn ask<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, Problem> {
        let gone = || ProblemKind::Unavailable.because("the manager is stopping");
        let (reply, answer) = oneshot::channel();
        self.inputs.send(Input::Asked(question(reply))).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
