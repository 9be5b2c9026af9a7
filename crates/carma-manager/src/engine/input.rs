//! The inputs of the engine.

use super::estimates::{EstimateOrder, Estimated};
use super::gpus::GpuReport;
use super::predictions::Predicted;
use super::task::Task;
use crate::agents::AgentReport;
use crate::batch::BatchReport;
use crate::executor::Report;
use crate::host::HostReading;
use crate::store::WriteError;

/// An input of the engine.
#[derive(Debug)]
pub(crate) enum Input {
    /// A task of a user or operator.
    Task { user: u32, task: Task },
    /// The result of writing a batch.
    Written(Result<(), WriteError>),
    /// A report about an attempt.
    Attempt(Report),
    /// A report of a GPU thread.
    Gpus(GpuReport),
    /// A report of an agent.
    Agent(AgentReport),
    /// A report of the batch system.
    Batch(BatchReport),
    /// A reading of the host.
    Host(Box<HostReading>),
    /// An estimate is ready, or could not be made.
    Estimated(Box<EstimateOrder>, Box<Estimated>),
    /// Starts and ends of jobs are predicted.
    Predicted(Predicted),
}
