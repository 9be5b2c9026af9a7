//! A manager's engine in this process, on its own emulated GPUs, with real shims.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{JobId, Outcome};
use carma_emu::{DriverVersion, Machine, VARIABLE};
use carma_gpu::{DEADLINE, Driver, Limits};
use carma_manager::api::{Problem, ProblemKind, Shutdown, Submitted};
use carma_manager::configuration::Configuration;
use carma_manager::engine::{Engine, Handle, Setup, World};
use carma_manager::memory_limits::CannotLimit;
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest, Owner};
use carma_manager::store::{JobHistory, Reader, Store};
use carma_manager::submission::ValidJobs;
use carma_manager::supervise::{Enforced, LaunchServer, enforceable};
use carma_testing::Missing;
use tempfile::TempDir;

/// Long enough for the slowest machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Lab {
    folder: TempDir,
    pub(crate) machine: Machine,
    configuration: Configuration,
    observes: bool,
    limits: Limits,
    enforced: Enforced,
    running: Option<(Engine, Handle, Reader)>,
}

impl Lab {
    /// Emulated GPUs with this time factor, and a manager with this configuration.
    pub(crate) fn new(gpus: &str, speed: f64, configuration: &str) -> Self {
        let mut lab = Self::stopped(gpus, speed, configuration);
        lab.start();
        lab
    }

    /// The same with a driver that can limit the memory of jobs.
    pub(crate) fn with_memory_limits(gpus: &str, speed: f64, configuration: &str) -> Result<Self, Missing> {
        let enforced = enforceable();
        if CannotLimit::on_host(rustix::process::geteuid().is_root(), enforced, true).is_some() {
            return Err(Missing::ControlGroups);
        }
        let mut lab = Self::stopped(gpus, speed, configuration);
        lab.enforced = enforced;
        lab.machine.set_driver(DriverVersion::R615).unwrap();
        lab.start();
        Ok(lab)
    }

    fn stopped(gpus: &str, speed: f64, configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("machine");
        let machine = Machine::create(&machine, &gpus.parse().unwrap(), speed, Some(program())).unwrap();
        let configuration = Configuration::parse(configuration).unwrap();
        let (limits, enforced) = (Limits::default(), Enforced::default());
        Self { folder, machine, configuration, observes: false, limits, enforced, running: None }
    }

    pub(crate) fn start(&mut self) {
        let places = Places::at(self.folder.path());
        // The previous engine may still prune old jobs in this process.
        let store = Arc::new(until(|| Store::open(places.database()).ok()));
        let reader = store.reader().unwrap();
        let driver = Driver::open(Some(&self.machine.library()), DEADLINE).unwrap().limited(self.limits.clone());
        let world = World {
            description: "emulated GPUs".to_owned(),
            speed: self.machine.clock().unwrap().1,
            environment: BTreeMap::from([(VARIABLE.to_owned(), self.machine.folder().display().to_string())]),
            search_paths: self.machine.search_paths().map(|(name, folder)| (name.to_owned(), folder)).into(),
            profiling: carma_gpu::profiling::Options { dcgmi: self.machine.programs().join("dcgmi"), ..Default::default() },
            mps_folder: self.machine.folder().join("mps"),
            mps_program: self.machine.programs().join(carma_gpu::mps::PROGRAM),
        };
        let setup = Setup {
            places,
            configuration: self.configuration.clone(),
            driver: Some(Arc::new(driver)),
            world,
            program: program().to_owned(),
            launch_server: Arc::new(LaunchServer::new(program())),
            local: true,
            observes: self.observes,
            enforced: self.enforced,
            record: Some(self.record()),
        };
        let (handle, arriving) = Engine::handle();
        let engine = Engine::start(setup, store, &handle, arriving).unwrap();
        self.running = Some((engine, handle, reader));
    }

    /// Sets the configuration of the next manager.
    pub(crate) fn configure(&mut self, configuration: &str) {
        self.configuration = Configuration::parse(configuration).unwrap();
    }

    /// Limits the GPUs of the next manager.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Stops the manager; jobs continue.
    pub(crate) fn stop(&mut self) {
        if let Some((engine, handle, reader)) = self.running.take() {
            block_on(handle.shutdown(Shutdown::default())).unwrap();
            drop((handle, reader));
            assert!(engine.join());
        }
    }

    pub(crate) fn observing(mut self) -> Self {
        self.stop();
        self.observes = true;
        self.start();
        self
    }

    pub(crate) fn record(&self) -> std::path::PathBuf {
        self.folder.path().join("record.jsonl")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.running.as_ref().unwrap().1
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.running.as_ref().unwrap().2
    }

    pub(crate) fn shell(&self, script: &str) -> JobRequest {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut request = JobRequest::new(JobCommand::Program(words), self.folder.path());
        request.environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        request
    }

    /// A job that needs no GPU.
    pub(crate) fn shell_job(&self, script: &str) -> JobRequest {
        let mut request = self.shell(script);
        request.resources.gpus = 0;
        request
    }

    /// A training-like job on emulated GPUs.
    pub(crate) fn train(&self, arguments: &str) -> JobRequest {
        self.shell(&format!("exec {} emu train {arguments}", program().display()))
    }

    pub(crate) fn try_submit(&self, jobs: Vec<JobRequest>) -> Result<Vec<JobId>, Problem> {
        self.accepted(jobs).map(|accepted| accepted.jobs)
    }

    /// Submits jobs together and returns their notes.
    pub(crate) fn accepted(&self, jobs: Vec<JobRequest>) -> Result<Submitted, Problem> {
        let jobs = ValidJobs::new(jobs).map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        block_on(self.handle().submit(me(), jobs, None))
    }

    pub(crate) fn submit(&self, request: JobRequest) -> JobId {
        self.try_submit(vec![request]).unwrap()[0]
    }

    pub(crate) fn job(&self, job: JobId) -> JobHistory {
        self.reader().job(job).unwrap().unwrap()
    }

    /// Waits until a job has ended.
    pub(crate) fn outcome(&self, job: JobId) -> Outcome {
        until(|| self.job(job).job.job.state.outcome().cloned())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop();
        let _ = Machine::remove(self.machine.folder());
    }
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_carma"))
}

pub(crate) fn me() -> Owner {
    let uid = rustix::process::getuid().as_raw();
    Owner { uid, gid: rustix::process::getgid().as_raw(), name: if uid == 0 { "root".to_owned() } else { "me".to_owned() } }
}

/// Kills the process at the end of the test.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn until<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain");
        thread::sleep(Duration::from_millis(3));
    }
}
