//! Processes on a device, as the driver lists them.

use std::collections::BTreeMap;

use carma_core::MiB;
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use serde::Serialize;

use crate::inventory::offered;

/// How a process uses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// For display or rendering.
    Graphics,
    /// CUDA.
    Compute,
    /// CUDA, through an MPS server.
    Mps,
}

/// A process on a device. Those in containers are listed like any other, by the host's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GpuProcess {
    /// The host's number of it.
    pub pid: u32,
    /// How it uses the device.
    pub kind: ProcessKind,
    /// Memory it holds there; unset where the driver does not tell, as inside of some containers.
    pub memory: Option<MiB>,
    /// The number of the GPU instance it runs on, where the GPU is cut into instances.
    pub gpu_instance: Option<u32>,
}

/// All processes on a device, each once, by number.
pub(crate) fn processes(device: &Device<'_>) -> Result<Vec<GpuProcess>, NvmlError> {
    let lists = [
        (ProcessKind::Graphics, offered(device.running_graphics_processes())?),
        (ProcessKind::Compute, offered(device.running_compute_processes())?),
        (ProcessKind::Mps, offered(device.mps_running_compute_processes())?),
    ];
    Ok(merged(lists.into_iter().flat_map(|(kind, list)| list.into_iter().flatten().map(move |process| (kind, process)))))
}

/// One process may stand in several lists: an MPS client in that of CUDA too.
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

    #[test]
    fn a_process_in_several_lists_is_one_process() {
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
