//! Processes on a device, as the driver lists them.

use std::collections::BTreeMap;

use carma_core::MiB;
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use serde::{Deserialize, Serialize};

use crate::driver::instances;
use crate::error::offered;

/// How a process uses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// For display or rendering.
    Graphics,
    /// CUDA.
    Compute,
    /// CUDA, through an MPS server.
    Mps,
}

/// A process on a device. Processes in containers are listed like any other, by the host's pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProcess {
    /// The host's number of it.
    pub pid: u32,
    /// How it uses the device.
    pub kind: ProcessKind,
    /// Memory it holds there; unset if the driver does not report it, as inside of some containers.
    pub memory: Option<MiB>,
    /// The number of its GPU instance, if the GPU is partitioned.
    pub gpu_instance: Option<u32>,
}

/// Retries for a list that grows while it is read.
const ATTEMPTS: usize = 8;

/// One of a device's process lists.
type ListQuery = fn(&Device<'_>) -> Result<Vec<ProcessInfo>, NvmlError>;

const LISTS: [(ProcessKind, ListQuery); 3] = [
    (ProcessKind::Graphics, |device| device.running_graphics_processes()),
    (ProcessKind::Compute, |device| device.running_compute_processes()),
    (ProcessKind::Mps, |device| device.mps_running_compute_processes()),
];

/// All processes on a device, each once, by pid.
pub(crate) fn processes(device: &Device<'_>) -> Result<Vec<GpuProcess>, NvmlError> {
    let mut listed = Vec::new();
    for (kind, ask) in LISTS {
        let parts = || instances(device).iter().map(|part| retried(|| ask(part))).collect();
        listed.extend(permitted(retried(|| ask(device)), parts)?.into_iter().map(|process| (kind, process)));
    }
    Ok(merged(listed.into_iter()))
}

/// A list; if it grew between the query of its length and that of its content, the query is repeated.
pub(crate) fn retried<T>(ask: impl Fn() -> Result<Vec<T>, NvmlError>) -> Result<Vec<T>, NvmlError> {
    let grew = |answer: &Result<_, NvmlError>| matches!(answer, Err(NvmlError::InsufficientSize(_)));
    (1..ATTEMPTS).map(|_| ask()).find(|answer| !grew(answer)).unwrap_or_else(&ask)
}

/// A partitioned GPU shows its processes to root only; each instance shows its own to every user.
fn permitted(
    whole: Result<Vec<ProcessInfo>, NvmlError>,
    parts: impl FnOnce() -> Result<Vec<Vec<ProcessInfo>>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    let list = match whole {
        Err(NvmlError::NoPermission) => parts().map(|parts| parts.concat()),
        whole => whole,
    };
    offered(list).map(Option::unwrap_or_default)
}

/// Merges the lists: one process may be in several, such as an MPS client in that of CUDA too.
fn merged(listed: impl Iterator<Item = (ProcessKind, ProcessInfo)>) -> Vec<GpuProcess> {
    let mut processes: BTreeMap<(u32, Option<u32>), GpuProcess> = BTreeMap::new();
    for (kind, process) in listed {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(MiB(bytes >> 20)),
            UsedGpuMemory::Unavailable => None,
        };
        let gpu_instance = process.gpu_instance_id;
        let entry = processes.entry((process.pid, gpu_instance)).or_insert(GpuProcess { pid: process.pid, kind, memory, gpu_instance });
        entry.kind = entry.kind.max(kind);
        entry.memory = entry.memory.max(memory);
    }
    processes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory: UsedGpuMemory::Unavailable, gpu_instance_id: Some(1), compute_instance_id: Some(0) }
    }

    #[test]
    fn a_list_that_grew_while_it_was_read_is_read_again() {
        let left = std::cell::Cell::new(3);
        let ask = || match left.replace(left.get() - 1) {
            0 => Ok(vec![process(7)]),
            _ => Err(NvmlError::InsufficientSize(None)),
        };
        assert_eq!(retried(ask).unwrap(), [process(7)]);
        assert!(matches!(retried::<()>(|| Err(NvmlError::InsufficientSize(None))), Err(NvmlError::InsufficientSize(_))));
    }

    #[test]
    fn without_root_mig_instances_are_read_one_by_one() {
        let parts = || Ok(vec![vec![process(7)], vec![process(8)]]);
        let refused = || Err(NvmlError::NoPermission);
        assert_eq!(permitted(refused(), parts).unwrap(), [process(7), process(8)]);
        assert_eq!(permitted(refused(), || Err(NvmlError::NoPermission)).unwrap(), []);
        assert!(permitted(Err(NvmlError::GpuLost), parts).is_err());
    }

    #[test]
    fn a_process_in_several_lists_counts_once() {
        let listed = |pid, used_gpu_memory| ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None };
        let lists = [
            (ProcessKind::Graphics, listed(7, UsedGpuMemory::Unavailable)),
            (ProcessKind::Compute, listed(7, UsedGpuMemory::Used(3 << 20))),
            (ProcessKind::Compute, listed(5, UsedGpuMemory::Used(1 << 30))),
            (ProcessKind::Mps, listed(5, UsedGpuMemory::Unavailable)),
        ];
        let process = |pid, kind, memory| GpuProcess { pid, kind, memory: Some(MiB(memory)), gpu_instance: None };
        assert_eq!(merged(lists.into_iter()), [process(5, ProcessKind::Mps, 1024), process(7, ProcessKind::Compute, 3)]);
    }
}
