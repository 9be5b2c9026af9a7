//! Everything that reaches the engine.

use super::estimates::{EstimateOrder, Estimated};
use super::gpus::GpuReport;
use super::question::Question;
use crate::executor::Report;
use crate::host::HostReading;
use crate::store::WriteError;

/// Something that reached the engine.
#[derive(Debug)]
pub(crate) enum Input {
    /// A user or operator asks.
    Question(Question),
    /// A batch of changes is on the disk, or is not.
    Written(Result<(), WriteError>),
    /// The executor reports on an attempt.
    Attempt(Report),
    /// A thread that works on GPUs reports.
    Gpus(GpuReport),
    /// The host was read.
    Host(Box<HostReading>),
    /// An estimate is ready, or could not be made.
    Estimated(Box<EstimateOrder>, Box<Estimated>),
}
