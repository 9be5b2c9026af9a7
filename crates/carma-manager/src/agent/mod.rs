//! The agent: runs attempts on another server for a manager.
//!
//! ```text
//!  sampler, host, executor, signals ──► inbox ──► the agent's loop ◄──► connection ◄──► manager
//!                                                      │
//!                                                      └──► executor ──► shims, which die with the agent
//! ```
//!
//! The agent connects to the manager, again and again. While the manager is away for less than the lease, jobs continue. After the lease the manager
//! may start them elsewhere, so the agent ends them and itself.

mod attempts;
mod connection;
mod estimates;
mod folder;
mod held_ends;
mod lease;
mod log_tail;
mod run;
mod server;
mod signals;
mod simulated;
mod talk;
mod terminals;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use carma_gpu::{Driver, DriverError};
use thiserror::Error;

pub(crate) use self::connection::AddressFile;
pub use self::connection::ManagerAddress;
pub use self::run::run;
pub use self::simulated::simulate;
use crate::executor::ExecutorError;
use crate::link::SecretError;
use crate::world::World;

/// Everything an agent needs.
#[derive(Debug)]
pub struct AgentSetup {
    /// Where the manager is.
    pub manager: ManagerAddress,
    /// The file of the shared secret.
    pub secret: PathBuf,
    /// The name of the pilot that it runs in.
    pub pilot: Option<String>,
    /// The number of its batch job.
    pub batch_job: Option<String>,
    /// The name of its host.
    pub node: String,
    /// A folder on a local disk, for attempts.
    pub folder: PathBuf,
    /// The folder with a folder of checkpoints for each job, which all servers share.
    pub checkpoints: PathBuf,
    /// Time until its batch job ends.
    pub left: Option<Duration>,
    /// How long before that it starts nothing new.
    pub drain: Duration,
    /// The GPU driver; unset where there are no GPUs.
    pub driver: Option<Arc<Driver>>,
    /// The kind of GPUs.
    pub world: World,
    /// The program that becomes estimators: this one.
    pub program: PathBuf,
    /// The program of the launch server: this one, also when its file was replaced.
    pub launch_program: PathBuf,
}

/// Why an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    /// The manager needs it no more, or its batch job ends.
    Done(String),
    /// The manager refused it.
    Refused(String),
    /// It had no answer of the manager for the time of its lease.
    LeaseLost,
}

/// Why an agent could not work.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The GPUs cannot be listed.
    #[error("cannot list the GPUs: {0}")]
    Gpus(#[from] DriverError),
    /// The system refused.
    #[error("cannot start the agent: {0}")]
    System(#[from] io::Error),
    /// Attempts cannot be run here.
    #[error("cannot run attempts: {0}")]
    Executor(String),
}

impl From<ExecutorError> for AgentError {
    fn from(error: ExecutorError) -> Self {
        Self::Executor(error.to_string())
    }
}
