//! Estimates of jobs: at once from earlier runs, or by other processes.
//!
//! A description or script belongs to the user, so a process of the user reads it, never the manager. Dry runs are done by agents where this host runs
//! no jobs on GPUs: a login node may lack the environments of jobs, or forbid such work.

mod calibrated;
mod earlier;
mod learning;
mod lengths;
mod memory;

use self::calibrated::Calibrated;
pub use self::earlier::earlier_need;
pub(crate) use self::learning::LearnedRun;
pub(crate) use self::lengths::{Groups, Lengths};
use self::memory::Memory;
pub(crate) use crate::estimator::Method;
pub(crate) use crate::event::JobEstimate as Estimated;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use carma_core::{JobId, JobSpec, UserId};

use super::decide::Reply;
use super::request_source::RequestSource;
use crate::agents::{AgentExecutor, AgentWait};
use crate::api::Forecast;
use crate::configuration::{DryRun, EstimateConfig};
use crate::estimator::{EstimateTask, Estimator, python_script};
use crate::pool::Pool;
use crate::request::{JobRequest, Owner};
use crate::supervise::LaunchServer;
use crate::turns::Limits;

/// Estimates at the same time: they compete with running jobs for cores. A dry run may take an hour, so a user without one need not wait for those of
/// others, unless very many users have one.
const LIMITS: Limits = Limits { shared: 2, most: 8 };
/// The same for dry runs that agents do. Each agent does a few at the same time; the others wait.
const AGENT_LIMITS: Limits = Limits { shared: 8, most: 16 };

fn method(request: &JobRequest, settings: &EstimateConfig) -> Option<Method> {
    let wanted = match settings.dry_run {
        DryRun::Never => false,
        DryRun::Asked => request.hints.dry_run,
        DryRun::Always => request.hints.dry_run || (request.resources.memory.is_none() && request.hints.model.is_none()),
    };
    match request.resources.gpus {
        0 => None,
        _ if wanted && python_script(request).is_some() => Some(Method::DryRun),
        _ => request.hints.model.as_ref().map(|_| Method::Static),
    }
}

/// What an estimate is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A job that waits for it.
    Job(JobId),
    /// A forecast for these jobs.
    Forecast { jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>> },
}

/// Where a job is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the manager's host.
    Here,
    /// By an agent.
    Agents,
}

/// A job to estimate.
#[derive(Debug)]
pub(crate) struct EstimateOrder {
    pub(crate) purpose: Purpose,
    pub(crate) request: RequestSource,
    pub(crate) owner: Owner,
    pub(crate) method: Method,
    /// The kind of GPU that it will run on, if known.
    pub(crate) gpu: Option<String>,
    pub(crate) place: Place,
    pub(crate) ordered: Instant,
    /// Its job is over, or has another order.
    pub(crate) stopped: Arc<AtomicBool>,
}

impl EstimateOrder {
    /// Whether the result is still needed.
    fn is_needed(&self) -> bool {
        match &self.purpose {
            Purpose::Job(_) => !self.stopped.load(Ordering::Relaxed),
            Purpose::Forecast { reply, .. } => !reply.is_closed(),
        }
    }

    fn task(&self, settings: &EstimateConfig) -> EstimateTask {
        EstimateTask {
            job: match self.purpose {
                Purpose::Job(job) => Some(job),
                Purpose::Forecast { .. } => None,
            },
            request: self.request.request().into_owned(),
            owner: self.owner.clone(),
            method: self.method,
            gpu: self.gpu.clone(),
            seconds: settings.dry_run_seconds,
            python: settings.python.clone(),
        }
    }

    /// How long it may wait for an agent. A client that waits for a forecast gets what is known.
    fn wait(&self, settings: &EstimateConfig) -> AgentWait {
        let limit = match self.purpose {
            Purpose::Job(_) => Duration::from_secs_f64(settings.agent_seconds.get()),
            Purpose::Forecast { .. } => Duration::ZERO,
        };
        AgentWait { since: self.ordered, limit }
    }
}

type Orders = Pool<Box<EstimateOrder>>;

/// An estimate that is not ready.
#[derive(Debug)]
struct Ordered {
    user: u32,
    place: Place,
    stopped: Arc<AtomicBool>,
}

/// The history of runs, and the threads that estimate. The threads end when this is dropped.
#[derive(Debug)]
pub(crate) struct Estimates {
    memory: Memory,
    calibrated: Calibrated,
    pub(crate) lengths: Lengths,
    settings: EstimateConfig,
    here: Orders,
    /// Threads that wait for agents. Unset in tests without agents.
    on_agents: Option<Orders>,
    /// Jobs whose estimate is not ready.
    ordered: HashMap<JobId, Ordered>,
}

/// Starts threads that estimate in this way.
fn start_threads(
    name: &str,
    limits: Limits,
    estimate: impl Fn(&EstimateOrder) -> Result<Estimated, String> + Send + Sync + 'static,
    done: impl Fn(Box<EstimateOrder>, Box<Estimated>) -> bool + Clone + Send + 'static,
) -> io::Result<Orders> {
    let estimate = Arc::new(estimate);
    Pool::start(name, limits, || {
        let (estimate, done) = (Arc::clone(&estimate), done.clone());
        Ok::<_, io::Error>(move |order: Box<EstimateOrder>| {
            let estimated = order.is_needed().then(|| estimate(&order));
            let Some(estimated) = estimated.filter(|_| order.is_needed()) else { return true };
            let estimated = estimated.unwrap_or_else(|reason| Estimated { notes: vec![reason], ..Estimated::default() });
            done(order, Box::new(estimated))
        })
    })
}

impl Estimates {
    /// Starts the threads. `state` is the manager's folder: earlier runs are in a file there, and running estimates have folders below it.
    pub(crate) fn start(
        program: &Path,
        launch_server: &Arc<LaunchServer>,
        settings: &EstimateConfig,
        state: &Path,
        agents: Option<Arc<AgentExecutor>>,
        done: impl Fn(Box<EstimateOrder>, Box<Estimated>) -> bool + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (estimator, known) = (Estimator::new(program.to_owned(), state.join("estimates"), Arc::clone(launch_server)), settings.clone());
        let local = move |order: &EstimateOrder| estimator.estimate(&order.task(&known), || order.is_needed());
        let here = start_threads("estimates", LIMITS, local, done.clone())?;
        let on_agents = agents.map(|agents| {
            let known = settings.clone();
            let remote =
                move |order: &EstimateOrder| agents.estimates().estimate(&order.task(&known), order.wait(&known), || order.is_needed());
            start_threads("dry runs", AGENT_LIMITS, remote, done)
        });
        // A manager that does not run as root has one user.
        let shared = settings.share_history || !rustix::process::geteuid().is_root();
        let memory = Memory::open(state.join("history.csv"), shared);
        let calibrated = Calibrated::open(state.join("calibration.csv"));
        let lengths = Lengths::open(state.join("durations.csv"), shared);
        Ok(Self {
            memory,
            calibrated,
            lengths,
            settings: settings.clone(),
            here,
            on_agents: on_agents.transpose()?,
            ordered: HashMap::new(),
        })
    }

    /// Estimates a job. The result is reported, unless the order is stopped before.
    pub(crate) fn order(&mut self, order: EstimateOrder) {
        let (user, place) = (order.owner.uid, order.place);
        if let Purpose::Job(job) = order.purpose {
            // After a failed write, jobs are estimated again.
            self.stop(job);
            self.ordered.insert(job, Ordered { user, place, stopped: Arc::clone(&order.stopped) });
        }
        self.threads(place).add(user, Box::new(order));
    }

    fn threads(&self, place: Place) -> &Orders {
        self.on_agents.as_ref().filter(|_| place == Place::Agents).unwrap_or(&self.here)
    }

    /// Whether a job waits for an estimate of an agent.
    pub(crate) fn needs_agent(&self, job: JobId) -> bool {
        self.ordered.get(&job).is_some_and(|ordered| ordered.place == Place::Agents)
    }

    /// The estimate of a job is ready.
    pub(crate) fn is_ready(&mut self, job: JobId) {
        self.ordered.remove(&job);
    }

    /// A job needs no estimate any more. Processes that estimate it are killed.
    pub(crate) fn stop(&mut self, job: JobId) {
        let Some(Ordered { user, place, stopped }) = self.ordered.remove(&job) else { return };
        stopped.store(true, Ordering::Relaxed);
        self.threads(place).remove(user, |order| matches!(order.purpose, Purpose::Job(of) if of == job));
    }

    /// What earlier runs of the same job of this user needed.
    pub(crate) fn recall(&self, request: &JobRequest, user: UserId) -> Option<Estimated> {
        self.memory.recall(request, user)
    }

    /// Corrects an estimate by what measured jobs say about these kinds of GPUs.
    pub(crate) fn correct(&self, estimated: &mut Estimated, gpus: &BTreeSet<&str>) {
        self.calibrated.correct(estimated, gpus.iter().copied());
    }

    /// How a job without earlier runs is estimated.
    pub(crate) fn method(&self, request: &JobRequest) -> Option<Method> {
        method(request, &self.settings)
    }

    /// Adds an estimate to what the core knows of a job, and raises it where earlier runs needed more. Answers what to tell the user.
    pub(crate) fn add_to(
        &self,
        spec: &mut JobSpec,
        request: &JobRequest,
        groups: &Groups,
        estimated: Option<&Estimated>,
    ) -> Option<String> {
        if let Some(Estimated { estimate, .. }) = estimated {
            estimate.clone().tell(spec);
        }
        spec.expected_duration = self.lengths.for_decisions(groups).or(spec.expected_duration);
        let raises = self.settings.raise_declared && spec.gpus > 0;
        raises.then(|| self.memory.earlier_runs(request, spec.user)).flatten()?.raise(spec)
    }
}
