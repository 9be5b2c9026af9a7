//! The executor: the interface through which the engine starts, signals and watches attempts.
//!
//! ```text
//!           start, signal, acknowledge                      plan, shim, exit watch
//!  engine ───────────────────────────────► Executor ───────────────────────────────► attempts
//!         ◄───────────────────────────────          ◄───────────────────────────────
//!            reports: started, delayed, not started, ended
//! ```
//!
//! The engine knows attempts by their numbers alone: folders, shims and processes belong to the executor, so that attempts can run on other hosts too.
//! Every call may be repeated. An attempt is started at most once, and its end is reported again to each manager that adopts it until the end is
//! acknowledged, which the engine does when the verdict is on the disk.

mod attempt_files;
#[cfg(test)]
pub(crate) mod fake;
mod leftovers;
mod local;
mod memory_limits;
mod printed;
mod start;
mod tracker;

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::SystemTime;

use carma_core::{AttemptId, DeviceId, JobId, Placement, Seconds, ServerId, Signal};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::MpsControl;
use serde::{Deserialize, Serialize};

pub(crate) use self::leftovers::{Leftovers, TAIL};
pub(crate) use self::local::{ExecutorError, LocalExecutor, Requests};
pub(crate) use self::memory_limits::bytes as limits_in_bytes;
pub(crate) use self::start::LocalSettings;
use crate::attempt::Past;
use crate::launch::CheckpointTerms;
use crate::request::Owner;
use crate::supervise::FolderError;
use crate::watch::OutputMark;

/// Runs attempts on a host.
pub(crate) trait Executor: Debug + Send + Sync {
    /// Starts an attempt, unless it was started before. The result is reported.
    fn start(&self, order: Box<StartOrder>);

    /// Sends a signal to an attempt. A starting attempt gets it as soon as it runs; an ended one does not get it.
    fn signal(&self, attempt: AttemptId, signal: Signal);

    /// Takes over the attempts that the store lists as running, and drops all others. Returns their states in the same order, and reports those that
    /// run or have ended.
    fn adopt(&self, attempts: &[(AttemptId, ServerId)]) -> Vec<Adopted>;

    /// The end of this attempt is on the disk and need not be reported again.
    fn acknowledge(&self, attempt: AttemptId);

    /// The share of work that an attempt reports as done, or that its output shows.
    fn progress(&self, attempt: AttemptId) -> Option<f64>;

    /// The size and the last change of an attempt's logs.
    fn output(&self, attempt: AttemptId) -> OutputMark;

    /// When an attempt last wrote a checkpoint; unset while that is not known yet.
    fn checkpoint(&self, attempt: AttemptId) -> Option<CheckpointTimes>;

    /// The attempts that these processes belong to.
    fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId>;

    /// The control group of an attempt that runs on this host, if it has one.
    fn group(&self, attempt: AttemptId) -> Option<PathBuf>;

    /// The highest job number with files on the host.
    fn highest_job(&self) -> Option<JobId>;

    /// Hides the values of secrets in the files of a finished job.
    fn hide_secrets(&self, job: JobId) -> Result<(), FolderError>;

    /// Removes the logs of an ended attempt, and says so in their place.
    fn remove_logs(&self, attempt: AttemptId);

    /// Removes the logs of unknown jobs, and kills their processes. May take a while.
    fn remove_unknown(&self, is_known: &dyn Fn(JobId) -> bool);
}

/// An attempt to start. It is in the store already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) attempt: AttemptId,
    pub(crate) owner: Owner,
    pub(crate) placement: Placement,
    pub(crate) devices: Vec<DeviceUuid>,
    /// The numbers of the device files of its GPUs; unset if one is unknown.
    pub(crate) gpu_files: Option<Vec<u32>>,
    /// The MPS daemon of its GPU. Agents have none.
    #[serde(skip)]
    pub(crate) mps: Option<MpsControl>,
    /// The most that is kept of each log, in bytes.
    pub(crate) log_limit: u64,
    /// When the job is asked to checkpoint, if it can, in the manager's time.
    pub(crate) checkpoints: CheckpointTerms,
    /// It is not started where its limits of GPU memory cannot be set.
    #[serde(default)]
    pub(crate) must_be_limited: bool,
}

/// A report of the executor to the engine about an attempt.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It is started, and these GPUs do not limit its memory as planned.
    NotLimited { attempt: AttemptId, devices: Vec<DeviceId>, reason: String },
    /// It runs under supervision.
    Started(AttemptId),
    /// It was started for an earlier manager, and has run for this long since, in the host's time. Only agents report it: others are adopted.
    Ran { attempt: AttemptId, ran: Seconds },
    /// The host cannot start it now. The executor retries by itself.
    Delayed { attempt: AttemptId, reason: String },
    /// It did not run, and will not.
    NotStarted { attempt: AttemptId, reason: String },
    /// It is over.
    Ended(Box<Leftovers>),
}

/// The state of an attempt of an earlier manager.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Adopted {
    /// It runs, for this long if known, in the host's time.
    Running { ran: Option<Seconds> },
    /// It is being started or its state is not clear yet. A report follows.
    Starting,
    /// It is over, and this is known of it. A report follows.
    Over(Option<Past>),
    /// It was never started.
    NeverStarted,
}

/// When an attempt was launched and when its checkpoint folder last changed, by the clock of the same file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct CheckpointTimes {
    pub(crate) launched: Option<SystemTime>,
    /// Unset while there is no checkpoint.
    pub(crate) changed: Option<SystemTime>,
}
