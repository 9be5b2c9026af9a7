//! Reports of the GPU threads to the engine.

use std::sync::Arc;

use carma_core::{AttemptId, DeviceId, Watts};
use carma_gpu::GpuEvent;
use carma_gpu::mps::ServerDied;

use super::scans::Scan;
use super::switch::Switched;
use crate::host_gpus::GpuSample;

/// A change of a GPU, or the result of an order.
#[derive(Debug)]
pub(crate) enum GpuChange {
    /// Something happened to a GPU.
    Event(GpuEvent),
    /// The MPS server of a GPU died.
    MpsDied(DeviceId, ServerDied),
    /// GPUs or instances were listed again.
    Found(Scan),
    /// The result of a switch to another mode.
    Switched(Box<Switched>),
    /// The result of a power-limit change: the present limit, or the error.
    PowerLimited(DeviceId, Result<Option<Watts>, String>),
    /// The memory limits of an attempt could not be set.
    NotLimited { attempt: AttemptId, device: DeviceId, reason: String },
}

/// A report to the engine.
#[derive(Debug)]
pub(crate) enum GpuReport {
    /// GPUs were sampled.
    Sampled(Vec<GpuSample>),
    /// Something changed.
    Changed(GpuChange),
}

/// Sends reports from any thread. False when the engine is gone.
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
