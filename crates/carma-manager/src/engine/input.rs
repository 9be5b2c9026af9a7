//! All that reaches the engine.

use carma_core::{AttemptId, DeviceId, JobId};
use carma_gpu::GpuEvent;
use carma_gpu::mps::ServerDied;

use super::devices::Devices;
use super::estimates::Estimated;
use super::exits::Remains;
use super::handle::Question;
use super::looks::Looked;
use crate::host::HostReading;
use crate::store::WriteError;
use crate::supervise::Supervised;

/// Something that reached the engine.
#[derive(Debug)]
pub(super) enum Input {
    /// Somebody asks.
    Asked(Question),
    /// A batch of changes is on the disk, or is not.
    Written(Result<(), WriteError>),
    /// A shim has taken an attempt.
    Launched(AttemptId, Box<Supervised>),
    /// It has not.
    NotLaunched(AttemptId, String),
    /// An attempt is over.
    Ended(Box<Remains>),
    /// GPUs were looked at.
    Looked(Vec<Looked>),
    /// Something happened to a GPU.
    Gpu(GpuEvent),
    /// The MPS server of a GPU died.
    MpsDied(DeviceId, ServerDied),
    /// GPUs or instances were asked for anew.
    Found(Devices),
    /// The host was looked at.
    Host(Box<HostReading>),
    /// A job's estimate is there, or is not.
    Estimated(JobId, Box<Estimated>),
}
