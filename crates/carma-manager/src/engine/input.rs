//! All that reaches the engine.

use carma_core::{AttemptId, DeviceId, Watts};
use carma_gpu::GpuEvent;
use carma_gpu::mps::ServerDied;

use super::estimates::{EstimateOrder, Estimated};
use super::exits::Remains;
use super::handle::Question;
use super::launcher::LaunchOrder;
use super::looks::Looked;
use super::modes::Switched;
use super::scans::Scan;
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
    /// The machine does not let us launch just now; nothing of the attempt ran.
    LaunchRefused(Box<LaunchOrder>, String),
    /// It is time to try that again.
    LaunchAgain(Box<LaunchOrder>),
    /// How an attempt stands cannot be found out just now.
    Unclear(AttemptId, String),
    /// An attempt is over.
    Ended(Box<Remains>),
    /// GPUs were looked at.
    Looked(Vec<Looked>),
    /// Something happened to a GPU.
    Gpu(GpuEvent),
    /// The MPS server of a GPU died.
    MpsDied(DeviceId, ServerDied),
    /// GPUs or instances were asked for anew.
    Found(Scan),
    /// A GPU was to be switched to another mode.
    Switched(Switched),
    /// The power limit of a GPU was to be set or put back: what it is now, or what went wrong.
    PowerLimited(DeviceId, Result<Option<Watts>, String>),
    /// The host was looked at.
    Host(Box<HostReading>),
    /// An estimate is ready, or could not be made.
    Estimated(Box<EstimateOrder>, Box<Estimated>),
}
