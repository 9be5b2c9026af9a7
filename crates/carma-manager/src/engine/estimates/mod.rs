//! Estimates of jobs: at once from earlier runs, or by other processes.
//!
//! A description or script belongs to the user, so a process of the user reads it, never the manager.

mod calibrated;
mod earlier;
mod estimator;
mod learning;
mod memory;

use self::calibrated::Calibrated;
pub use self::earlier::earlier_need;
use self::memory::Memory;
pub(crate) use crate::event::JobEstimate as Estimated;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use carma_core::{JobId, JobSpec, UserId};

use self::estimator::Estimator;
use super::decide::Reply;
use crate::api::Forecast;
use crate::configuration::{DryRun, EstimateConfig};
use crate::pool::Pool;
use crate::request::{JobCommand, JobRequest, Owner};
use crate::turns::Limits;

/// Estimates at the same time: they compete with running jobs for cores. A dry run may take an hour, so a user without one need not wait for those of
/// others, unless very many users have one.
const LIMITS: Limits = Limits { shared: 2, most: 8 };

/// How a job is to be estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// From a description of its model.
    Static,
    /// By running its script without a GPU.
    DryRun,
}

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

/// Commands that start a Python script once for each GPU. A dry run parses their options itself.
const LAUNCHERS: [&str; 5] = ["torchrun", "accelerate", "accelerate-launch", "deepspeed", "fabric"];

/// The Python interpreter and its arguments, where the job is a Python script, or a launcher of one.
fn python_script(request: &JobRequest) -> Option<(String, &[String])> {
    let JobCommand::Program(words) = &request.command else { return None };
    let (program, rest) = words.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let name = Path::new(program).file_name()?.to_str()?;
    if name.starts_with("python") {
        return Some((program.clone(), rest));
    }
    // The interpreter of a launcher is beside it.
    LAUNCHERS.contains(&name).then(|| (Path::new(program).with_file_name("python").to_string_lossy().into_owned(), words.as_slice()))
}

/// What an estimate is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A job that waits for it.
    Job(JobId),
    /// A forecast for these jobs.
    Forecast { jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>> },
}

/// A job to estimate.
#[derive(Debug)]
pub(crate) struct EstimateOrder {
    pub(crate) purpose: Purpose,
    pub(crate) request: JobRequest,
    pub(crate) owner: Owner,
    pub(crate) method: Method,
    /// The kind of GPU that it will run on, if known.
    gpu: Option<String>,
    /// Its job is over, or has another order.
    pub(crate) stopped: Arc<AtomicBool>,
}

impl EstimateOrder {
    pub(crate) fn new(purpose: Purpose, request: JobRequest, owner: Owner, method: Method, gpu: Option<&str>) -> Self {
        Self { purpose, request, owner, method, gpu: gpu.map(str::to_owned), stopped: Arc::default() }
    }

    /// Whether the result is still needed.
    fn is_needed(&self) -> bool {
        match &self.purpose {
            Purpose::Job(_) => !self.stopped.load(Ordering::Relaxed),
            Purpose::Forecast { reply, .. } => !reply.is_closed(),
        }
    }
}

/// The history of runs, and the threads that estimate. The threads end when this is dropped.
#[derive(Debug)]
pub(crate) struct Estimates {
    memory: Memory,
    calibrated: Calibrated,
    settings: EstimateConfig,
    threads: Pool<Box<EstimateOrder>>,
    /// Jobs whose estimate is not ready: their users, and what stops it.
    ordered: HashMap<JobId, (u32, Arc<AtomicBool>)>,
}

impl Estimates {
    /// Starts the threads. `state` is the manager's folder: earlier runs are in a file there, and running estimates have folders below it.
    pub(crate) fn start(
        program: &Path,
        settings: &EstimateConfig,
        state: &Path,
        done: impl Fn(Box<EstimateOrder>, Box<Estimated>) -> bool + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let estimator = Arc::new(Estimator::new(program.to_owned(), settings.clone(), state.join("estimates")));
        let new_worker = || {
            let (estimator, done) = (Arc::clone(&estimator), done.clone());
            Ok::<_, io::Error>(move |order: Box<EstimateOrder>| {
                let estimated = order.is_needed().then(|| estimator.estimate(&order));
                let Some(estimated) = estimated.filter(|_| order.is_needed()) else { return true };
                let estimated = estimated.unwrap_or_else(|reason| Estimated { notes: vec![reason], ..Estimated::default() });
                done(order, Box::new(estimated))
            })
        };
        let threads = Pool::start("estimates", LIMITS, new_worker)?;
        // A manager that does not run as root has one user.
        let shared = settings.share_history || !rustix::process::geteuid().is_root();
        let memory = Memory::open(state.join("history.csv"), shared);
        let calibrated = Calibrated::open(state.join("calibration.csv"));
        Ok(Self { memory, calibrated, settings: settings.clone(), threads, ordered: HashMap::new() })
    }

    /// Estimates a job. The result is reported, unless the order is stopped before.
    pub(crate) fn order(&mut self, order: EstimateOrder) {
        if let Purpose::Job(job) = order.purpose {
            // After a failed write, jobs are estimated again.
            self.stop(job);
            self.ordered.insert(job, (order.owner.uid, Arc::clone(&order.stopped)));
        }
        self.threads.add(order.owner.uid, Box::new(order));
    }

    /// The estimate of a job is ready.
    pub(crate) fn is_ready(&mut self, job: JobId) {
        self.ordered.remove(&job);
    }

    /// A job needs no estimate any more. Processes that estimate it are killed.
    pub(crate) fn stop(&mut self, job: JobId) {
        let Some((user, stopped)) = self.ordered.remove(&job) else { return };
        stopped.store(true, Ordering::Relaxed);
        self.threads.remove(user, |order| matches!(order.purpose, Purpose::Job(of) if of == job));
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
    pub(crate) fn add_to(&self, spec: &mut JobSpec, request: &JobRequest, estimated: Option<&Estimated>) -> Option<String> {
        if let Some(Estimated { estimate, .. }) = estimated {
            estimate.clone().tell(spec);
        }
        let raises = self.settings.raise_declared && spec.gpus > 0;
        self.memory.earlier_runs(request, spec.user).filter(|_| raises)?.raise(spec)
    }
}
