//! An engine that is driven step by step, with a real store and a recording executor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use carma_core::{AttemptId, CollocationMode, DeviceId, Event, JobId, MiB, Outcome, Sample, State};
use carma_gpu::profiling::{Options, Target};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::agents::Executors;
use crate::api::{ActionResult, JobAction, Problem, Submitted};
use crate::attempt::{Ended, Exit};
use crate::configuration::Configuration;
use crate::engine::decide::Reply;
use crate::engine::handle::Handle;
use crate::engine::input::Input;
use crate::engine::jobs_action::JobsAction;
use crate::engine::question::Question;
use crate::engine::run::{Engine, EngineInbox};
use crate::engine::setup::Setup;
use crate::engine::state::EngineState;
use crate::engine::task::Task;
use crate::executor::fake::{Call, FakeExecutor};
use crate::executor::{Executor, Leftovers, Report};
use crate::heartbeat::Part;
use crate::host_gpus::{Device, Devices, LOCAL_SERVER};
use crate::places::Places;
use crate::request::{JobCommand, JobRequest, Owner};
use crate::store::Store;
use crate::submission::ValidJobs;
use crate::submission_key::SubmissionKey;
use crate::supervise::{Enforced, LaunchServer};
use crate::world::World;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The engine of a manager in a folder of its own.
pub(super) struct Lab {
    pub(super) engine: EngineState,
    pub(super) executor: Arc<FakeExecutor>,
    handle: Handle,
    inbox: EngineInbox,
    folder: Arc<TempDir>,
}

/// An engine in its own thread.
pub(super) struct RunningLab {
    pub(super) handle: Handle,
    pub(super) executor: Arc<FakeExecutor>,
    _folder: Arc<TempDir>,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::at(Arc::new(tempfile::tempdir().unwrap()), Arc::default())
    }

    fn at(folder: Arc<TempDir>, executor: Arc<FakeExecutor>) -> Self {
        let places = Places::at(folder.path());
        let store = Arc::new(Store::open(places.database()).unwrap());
        let mut configuration = Configuration::default();
        configuration.manager.notifications.enabled = false;
        let world = World {
            description: "none".to_owned(),
            speed: 1.0,
            environment: BTreeMap::new(),
            search_paths: BTreeMap::new(),
            profiling: Options::default(),
            mps_folder: folder.path().join("mps"),
            mps_program: "false".into(),
        };
        let enforced = Enforced::default();
        let setup = Setup {
            places,
            configuration,
            driver: None,
            world,
            program: "false".into(),
            launch_server: Arc::new(LaunchServer::new("false")),
            local: true,
            observes: false,
            record: None,
            enforced,
        };
        let (handle, inbox): (Handle, _) = Engine::handle();
        let mut engine =
            EngineState::new(setup, store, &handle, Executors { all: Arc::clone(&executor) as Arc<dyn Executor>, agents: None }).unwrap();
        engine.begin().unwrap();
        Self { engine, executor, handle, inbox, folder }
    }

    /// Lets the engine run by itself.
    pub(super) fn run(self) -> RunningLab {
        let Self { engine, executor, handle, inbox, folder } = self;
        let heartbeat = handle.heartbeats.start(Part::Engine);
        thread::spawn(move || engine.run(&inbox.0, &heartbeat));
        RunningLab { handle, executor, _folder: folder }
    }

    /// The manager is killed, and another one is started on what it left.
    pub(super) fn restart(self, prepare: impl FnOnce(&FakeExecutor)) -> Self {
        let (folder, executor) = (Arc::clone(&self.folder), Arc::clone(&self.executor));
        drop(self);
        prepare(&executor);
        Self::at(folder, executor)
    }

    /// There is a GPU with this memory.
    pub(super) fn attach_gpu(&mut self, memory: MiB) -> DeviceId {
        let id = DeviceId::gpu(LOCAL_SERVER, 0);
        let uuid: carma_gpu::DeviceUuid = "GPU-0".parse().unwrap();
        let target = Target::gpu(uuid.clone());
        let device = Device {
            id,
            uuid,
            file: None,
            name: "test".to_owned(),
            memory,
            mode: CollocationMode::Streams,
            power: None,
            target,
            limits_memory: false,
        };
        self.engine.gpus.found(&mut self.engine.decisions, &Devices::from_iter([device]));
        let sample = Sample::new(self.engine.decisions.now(), MiB::ZERO);
        self.engine.decisions.tell(Event::GpuSampled { device: id, sample }).unwrap();
        self.engine.act();
        self.settle();
        id
    }

    /// Asks for a job. The answer comes when the job is on the disk.
    pub(super) fn ask_for_job(&mut self, gpus: u32) -> oneshot::Receiver<Result<Submitted, Problem>> {
        let (input, answer) = submission(gpus);
        self.take(input);
        answer
    }

    /// Asks for a job of this user, with a key.
    pub(super) fn ask_with_key(&mut self, uid: u32, key: &str) -> oneshot::Receiver<Result<Submitted, Problem>> {
        let owner = Owner { uid, gid: uid, name: uid.to_string() };
        let (input, answer) = submission_of(owner, 0, Some(key.parse().unwrap()));
        self.take(input);
        answer
    }

    /// Submits a job that begins at this time of the wall clock, in seconds.
    pub(super) fn submit_later(&mut self, begin: u64) -> JobId {
        let mut request = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
        request.resources.gpus = 0;
        request.schedule.begin = Some(begin);
        let (reply, mut answer) = oneshot::channel();
        let (owner, jobs) = (Owner { uid: 1000, gid: 1000, name: "ada".to_owned() }, ValidJobs::new(vec![request]).unwrap());
        self.take(Input::Task { user: 1000, task: Task::Question(Question::Submit { owner, jobs, key: None, reply }) });
        self.settle();
        answer.try_recv().unwrap().unwrap().jobs[0]
    }

    /// Submits a job, and carries out what follows: its first attempt.
    pub(super) fn submit(&mut self, gpus: u32) -> AttemptId {
        let mut answer = self.ask_for_job(gpus);
        self.settle();
        AttemptId { job: answer.try_recv().unwrap().unwrap().jobs[0], number: 1 }
    }

    /// Takes an input, and does what can be done at once.
    pub(super) fn take(&mut self, input: Input) {
        self.engine.take(input);
        self.engine.work();
    }

    /// A user acts on a job.
    pub(super) fn act(&mut self, job: JobId, action: JobAction) {
        let (reply, mut answer) = oneshot::channel();
        self.take(action_on(vec![job], action, reply));
        self.settle();
        assert_eq!(answer.try_recv().unwrap().unwrap().done, [job]);
    }

    /// Takes one turn of the engine: some work, and the commit of what it changed.
    pub(super) fn turn(&mut self) {
        self.engine.work();
        self.engine.flush();
        if self.engine.writer.is_busy() {
            let input = self.inbox.0.recv_timeout(TIMEOUT).unwrap();
            self.engine.take(input);
        }
    }

    /// Writes down and carries out everything that is due.
    pub(super) fn settle(&mut self) {
        loop {
            self.engine.work();
            self.engine.flush();
            if self.engine.has_work() {
                continue;
            }
            if !self.engine.writer.is_busy() && self.engine.decisions.batch.is_empty() {
                return;
            }
            if self.engine.writer.is_busy() {
                let input = self.inbox.0.recv_timeout(TIMEOUT).unwrap();
                self.engine.take(input);
            }
        }
    }

    /// The executor reports, and what follows is carried out.
    pub(super) fn report(&mut self, report: Report) {
        self.engine.take(Input::Attempt(report));
        self.settle();
    }

    /// What the executor was told since the last time.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.executor.calls()
    }

    pub(super) fn state(&self, job: JobId) -> Option<State> {
        self.engine.decisions.job(job).map(|job| job.state.clone())
    }

    /// How a job ended, from the store.
    pub(super) fn outcome(&self, job: JobId) -> Option<Outcome> {
        self.engine.reader.job(job).unwrap().and_then(|history| history.job.job.state.outcome().cloned())
    }
}

/// A job for the engine, and its answer.
pub(super) fn submission(gpus: u32) -> (Input, oneshot::Receiver<Result<Submitted, Problem>>) {
    submission_of(Owner { uid: 1000, gid: 1000, name: "ada".to_owned() }, gpus, None)
}

/// Many jobs that wait for each other's GPU, and their answer.
pub(super) fn many_jobs(jobs: usize) -> (Input, oneshot::Receiver<Result<Submitted, Problem>>) {
    submission_of_many(Owner { uid: 1000, gid: 1000, name: "ada".to_owned() }, jobs, 1, None)
}

/// A job of another user, and its answer.
pub(super) fn another_users_job() -> (Input, oneshot::Receiver<Result<Submitted, Problem>>) {
    submission_of(Owner { uid: 1001, gid: 1001, name: "bob".to_owned() }, 0, None)
}

fn submission_of(owner: Owner, gpus: u32, key: Option<SubmissionKey>) -> (Input, oneshot::Receiver<Result<Submitted, Problem>>) {
    submission_of_many(owner, 1, gpus, key)
}

fn submission_of_many(
    owner: Owner,
    jobs: usize,
    gpus: u32,
    key: Option<SubmissionKey>,
) -> (Input, oneshot::Receiver<Result<Submitted, Problem>>) {
    let mut request = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
    request.resources.gpus = gpus;
    request.resources.exclusive = jobs > 1;
    let (reply, answer) = oneshot::channel();
    let (user, jobs) = (owner.uid, ValidJobs::new(vec![request; jobs]).unwrap());
    (Input::Task { user, task: Task::Question(Question::Submit { owner, jobs, key, reply }) }, answer)
}

/// An action of a user on jobs.
pub(super) fn action_on(jobs: Vec<JobId>, action: JobAction, reply: Reply<ActionResult>) -> Input {
    Input::Task { user: 1000, task: Task::Action(Box::new(JobsAction::new(jobs, action, "ada".to_owned(), reply))) }
}

/// The end of an attempt with this exit and these errors.
pub(super) fn ended(attempt: AttemptId, exit: Exit, stderr: &str) -> Report {
    let now = SystemTime::now();
    let ended = Some(Ended { exit, started: now, ended: now, oom_kills: None, at_memory_limit: false });
    Report::Ended(Box::new(Leftovers { attempt, ended, stdout: Vec::new(), stderr: stderr.into(), log_bytes: 0, kernel_log: None }))
}
