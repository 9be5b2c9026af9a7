//! What jobs will need: remembered from earlier runs at once, and worked out by others where it takes longer.
//!
//! A description or a script is the user's file, so it is read by a process of the user's, never by the manager itself.

mod estimator;
mod memory;

pub(super) use crate::event::JobEstimate as Estimated;
pub(super) use memory::Memory;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use carma_core::JobId;

use self::estimator::Estimator;
use super::handle::Reply;
use super::input::Input;
use super::pool::Pool;
use crate::api::Forecast;
use crate::configuration::{DryRun, EstimateSettings};
use crate::request::{JobCommand, JobRequest, Owner};

/// Estimates at the same time: they take the host's cores from jobs that run.
const THREADS: usize = 2;

/// How a job is to be estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// From a description of its model.
    Static,
    /// By running its script without a GPU.
    DryRun,
}

/// How this job is to be estimated, of which memory knows nothing.
pub(super) fn method(request: &JobRequest, settings: &EstimateSettings) -> Option<Method> {
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

/// The Python program and what it is called with, where that is what the job runs.
fn python_script(request: &JobRequest) -> Option<(&str, &[String])> {
    let JobCommand::Program(words) = &request.command else { return None };
    let (program, rest) = words.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    (name.starts_with("python") && !rest.is_empty()).then_some((program.as_str(), rest))
}

/// What an estimate is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A job that waits for it.
    Job(JobId),
    /// Somebody wants to know what would become of these.
    Forecast { jobs: Vec<JobRequest>, reply: Reply<Vec<Forecast>> },
}

/// A job to estimate.
#[derive(Debug)]
pub(super) struct EstimateOrder {
    pub(super) purpose: Purpose,
    pub(super) request: JobRequest,
    pub(super) owner: Owner,
    pub(super) method: Method,
}

/// The estimating threads. Dropped, they end.
#[derive(Debug)]
pub(super) struct Estimators(Pool<Box<EstimateOrder>>);

impl Estimators {
    /// Starts them; while they are at work, their processes have folders below this one.
    pub(super) fn start(program: &Path, settings: &EstimateSettings, folder: PathBuf, inputs: &Sender<Input>) -> io::Result<Self> {
        let estimator = Arc::new(Estimator::new(program.to_owned(), settings.clone(), folder));
        let hire = || {
            let (estimator, inputs) = (Arc::clone(&estimator), inputs.clone());
            Ok(move |order: Box<EstimateOrder>| {
                let estimated =
                    estimator.estimate(&order).unwrap_or_else(|reason| Estimated { notes: vec![reason], ..Estimated::default() });
                inputs.send(Input::Estimated(order, Box::new(estimated))).is_ok()
            })
        };
        Pool::start("estimates", THREADS, hire).map(Self)
    }

    pub(super) fn estimate(&self, order: EstimateOrder) {
        self.0.give(Box::new(order));
    }
}
