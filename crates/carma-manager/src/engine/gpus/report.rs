//! What the threads that work on GPUs tell the engine.

use std::sync::Arc;

use carma_core::{DeviceId, Watts};
use carma_gpu::GpuEvent;
use carma_gpu::mps::ServerDied;

use super::sample::GpuSample;
use super::scans::Scan;
use super::switch::Switched;

/// What became of something that was done to GPUs, or what happened to one.
#[derive(Debug)]
pub(crate) enum GpuChange {
    /// Something happened to a GPU.
    Event(GpuEvent),
    /// The MPS server of a GPU died.
    MpsDied(DeviceId, ServerDied),
    /// GPUs or instances were listed again.
    Found(Scan),
    /// A GPU was to be switched to another mode.
    Switched(Box<Switched>),
    /// The power limit of a GPU was to be set or put back: what it is now, or what went wrong.
    PowerLimited(DeviceId, Result<Option<Watts>, String>),
}

/// What the threads that work on GPUs tell the engine.
#[derive(Debug)]
pub(crate) enum GpuReport {
    /// GPUs were sampled.
    Sampled(Vec<GpuSample>),
    /// Something is not as it was.
    Changed(GpuChange),
}

/// Takes reports from any thread; false when no more are wanted.
#[derive(Clone)]
pub(crate) struct Reports(Arc<dyn Fn(GpuReport) -> bool + Send + Sync>);

impl Reports {
    pub(crate) fn new(take: impl Fn(GpuReport) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn sampled(&self, samples: Vec<GpuSample>) -> bool {
        (self.0)(GpuReport::Sampled(samples))
    }

    pub(crate) fn changed(&self, change: GpuChange) -> bool {
        (self.0)(GpuReport::Changed(change))
    }
}
