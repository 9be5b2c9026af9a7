//! GPUs as text and numbers.

use carma_core::{CollocationMode, MiB};
use carma_manager::api::{GpuDetail, GpuTenant};

use crate::manager::devices;

/// Used and reserved memory of a job on a GPU, and its utilisation.
pub(super) fn tenant_usage(tenant: &GpuTenant) -> String {
    let used = tenant.memory.map_or_else(|| "-".to_owned(), gibibytes);
    let busy = tenant.smact.map_or(String::new(), |share| format!(" SMACT {share:.2}"));
    format!("{used}/{} GiB{busy}", gibibytes(tenant.promised))
}

fn gibibytes(MiB(size): MiB) -> String {
    format!("{:.1}", size as f64 / 1024.0)
}

/// Used and total memory.
pub(super) fn memory_text(gpu: &GpuDetail) -> String {
    format!("{}/{}", gpu.memory_used.map_or_else(|| "-".to_owned(), gibibytes), gibibytes(gpu.memory))
}

pub(super) fn temperature(gpu: &GpuDetail) -> String {
    gpu.temperature.map_or_else(String::new, |degrees| format!("{degrees} C"))
}

/// Notes about a GPU besides its numbers.
pub(super) fn state_text(gpu: &GpuDetail) -> String {
    let mode = match gpu.mode {
        CollocationMode::Streams => None,
        CollocationMode::Mps { .. } => Some("MPS".to_owned()),
        CollocationMode::Mig => Some("MIG".to_owned()),
    };
    let parts = [
        gpu.lost.then(|| "LOST".to_owned()),
        gpu.drained.then(|| "drained".to_owned()),
        mode,
        (gpu.foreign > 0).then(|| format!("{} foreign", gpu.foreign)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Details of the selected GPU.
pub(super) fn about(gpu: &GpuDetail) -> String {
    let closed = if gpu.closed.is_empty() { "takes jobs".to_owned() } else { gpu.closed.join("; ") };
    format!("GPU {} ({}): {closed}; counters: {}", devices([gpu.device]), gpu.name, gpu.counters)
}
