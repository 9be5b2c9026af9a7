//! GPUs as text and numbers.

use carma_core::{CollocationMode, MiB};
use carma_manager::api::{GpuDetail, GpuTenant};

use carma_format::printable;

use crate::manager::devices;

/// Room for the name of a node.
const NODE_WIDTH: usize = 12;

/// The name of a GPU, with its host if that is not the manager's.
pub(super) fn name(gpu: &GpuDetail) -> String {
    let name = devices([gpu.device]);
    // The domain is that of all nodes.
    let host = gpu.node.as_deref().and_then(|node| node.split('.').next());
    host.map_or_else(|| name.clone(), |host| format!("{name} {}", end_of(&printable(host), NODE_WIDTH)))
}

/// The end of a long name: names of nodes differ there.
fn end_of(name: &str, width: usize) -> String {
    let letters = name.chars().count();
    if letters <= width { name.to_owned() } else { format!("..{}", name.chars().skip(letters + 2 - width).collect::<String>()) }
}

/// Used and reserved memory of a job on a GPU, and its utilisation.
pub(super) fn tenant_usage(tenant: &GpuTenant) -> String {
    let used = tenant.memory.map_or_else(|| "-".to_owned(), gibibytes);
    let busy = tenant.smact.map_or(String::new(), |share| format!(" SMACT {share:.2}"));
    format!("{used}/{} GiB{busy}", gibibytes(tenant.reserved))
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
        gpu.silent_for.map(|_| "NO ANSWER".to_owned()),
        gpu.drained.then(|| if gpu.drained_for.is_some() { "drained: faults" } else { "drained" }.to_owned()),
        (!gpu.throttling.is_empty()).then(|| "throttled".to_owned()),
        mode,
        (gpu.foreign > 0).then(|| format!("{} foreign", gpu.foreign)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Details of the selected GPU.
pub(super) fn about(gpu: &GpuDetail) -> String {
    let closed = if gpu.closed.is_empty() { "takes jobs".to_owned() } else { gpu.closed.join("; ") };
    let host = gpu.node.as_deref().map(|node| format!(" on {}", printable(node))).unwrap_or_default();
    let throttling: Vec<&str> = gpu.throttling.iter().map(|reason| reason.name()).collect();
    let throttled = if throttling.is_empty() { String::new() } else { format!("; throttled: {}", throttling.join(", ")) };
    let faults = gpu.drained_for.as_ref().map_or(String::new(), |faults| format!(" ({faults})"));
    format!("GPU {}{host} ({}): {closed}{faults}{throttled}; counters: {}", devices([gpu.device]), gpu.name, gpu.counters)
}
