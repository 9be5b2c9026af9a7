//! Processes on devices, their memory, and their activity.

use std::ffi::{c_uint, c_ulonglong};
use std::time::{SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessDetail_v1_t, nvmlProcessDetailList_v1_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t,
    nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t, nvmlProcessesUtilizationInfo_v1_t,
};

use super::answer::{Answer, Code, finish, of_device, of_gpu, put_list, versioned};
use super::declare::{aliases, calls};
use crate::readings::{part, percent};
use crate::state::{ContextKind, ContextRecord, NONE, Place, State};

/// The kind of processes in a list.
#[derive(Clone, Copy)]
enum ListKind {
    Compute,
    Graphics,
    Mps,
}

impl ListKind {
    /// A client of MPS is in two lists: tools show it as `M+C`.
    const fn holds(self, context: &ContextRecord) -> bool {
        match context.kind() {
            ContextKind::Compute | ContextKind::MpsServer => matches!(self, Self::Compute),
            ContextKind::MpsClient => matches!(self, Self::Compute | Self::Mps),
            ContextKind::Graphics => matches!(self, Self::Graphics),
        }
    }

    const fn from_mode(mode: c_uint) -> Answer<Self> {
        match mode {
            0 => Ok(Self::Compute),
            1 => Ok(Self::Graphics),
            2 => Ok(Self::Mps),
            _ => Err(Code::INVALID_ARGUMENT),
        }
    }
}

fn details(state: &State<'_>, place: Place, of: ListKind) -> Vec<nvmlProcessDetail_v1_t> {
    let detail = |context: &ContextRecord| {
        let instance = state.gpus[place.gpu].instances.get(context.instance as usize).map(|instance| instance.id);
        nvmlProcessDetail_v1_t {
            pid: context.pid,
            usedGpuMemory: context.bytes,
            gpuInstanceId: instance.unwrap_or(NONE),
            // Each GPU instance has one compute instance.
            computeInstanceId: instance.map_or(NONE, |_| 0),
            usedGpuCcProtectedMemory: 0,
        }
    };
    state.contexts_at(place).filter(|context| of.holds(context)).map(detail).collect()
}

fn second(detail: &nvmlProcessDetail_v1_t) -> nvmlProcessInfo_v2_t {
    let nvmlProcessDetail_v1_t { pid, usedGpuMemory, gpuInstanceId, computeInstanceId, .. } = *detail;
    nvmlProcessInfo_v2_t { pid, usedGpuMemory, gpuInstanceId, computeInstanceId }
}

fn first(detail: &nvmlProcessDetail_v1_t) -> nvmlProcessInfo_v1_t {
    nvmlProcessInfo_v1_t { pid: detail.pid, usedGpuMemory: detail.usedGpuMemory }
}

/// Lists of one kind of processes, in each version: `first, second, third = kind, structure of the first, of the others;`
macro_rules! lists {
    ($($first:ident, $second:ident, $third:ident = $of:expr;)*) => { $(
        lists! { $first(nvmlProcessInfo_v1_t, first) = $of; }
        lists! { $third(nvmlProcessInfo_v2_t, second) = $of; }
        aliases! { $second(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_v2_t) = $third; }
    )* };
    ($name:ident($info:ty, $from:expr) = $of:expr;) => {
        calls! {
            fn $name(device: nvmlDevice_t, count: *mut c_uint, infos: *mut $info) {
                put_list(count, infos, of_device(CALL, device, |state, place| Ok(details(state, place, $of).iter().map($from).collect())))
            }
        }
    };
}

lists! {
    nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3 = ListKind::Compute;
    nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3 = ListKind::Graphics;
    nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetMPSComputeRunningProcesses_v3 = ListKind::Mps;
}

calls! {
    fn nvmlDeviceGetRunningProcessDetailList(device: nvmlDevice_t, list: *mut nvmlProcessDetailList_v1_t) {
        match versioned(list, 1).and_then(|list| Ok((ListKind::from_mode(list.mode)?, list))) {
            Err(code) => code.0,
            Ok((of, list)) => {
                put_list(&raw mut list.numProcArrayEntries, list.procArray, of_device(CALL, device, |state, place| Ok(details(state, place, of))))
            }
        }
    }

    fn nvmlDeviceGetProcessUtilization(device: nvmlDevice_t, out: *mut nvmlProcessUtilizationSample_t, count: *mut c_uint, since: c_ulonglong) {
        let samples = of_gpu(CALL, device, |state, gpu| utilisation(state, gpu, since));
        let sample = |info: nvmlProcessUtilizationInfo_v1_t| {
            let nvmlProcessUtilizationInfo_v1_t { timeStamp, pid, smUtil, memUtil, encUtil, decUtil, .. } = info;
            nvmlProcessUtilizationSample_t { pid, timeStamp, smUtil, memUtil, encUtil, decUtil }
        };
        put_list(count, out, samples.map(|samples| samples.into_iter().map(sample).collect()))
    }

    fn nvmlDeviceGetProcessesUtilizationInfo(device: nvmlDevice_t, out: *mut nvmlProcessesUtilizationInfo_v1_t) {
        match versioned(out, 1) {
            Err(code) => finish(Err(code)),
            Ok(out) => {
                let samples = of_gpu(CALL, device, |state, gpu| utilisation(state, gpu, out.lastSeenTimeStamp));
                put_list(&raw mut out.processSamplesCount, out.procUtilArray, samples)
            }
        }
    }
}

/// Microseconds since 1970, as samples are dated.
pub(super) fn timestamp() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// The present activity of each process. The driver keeps no such samples of partitioned GPUs, or of idle processes.
fn utilisation(state: &State<'_>, gpu: usize, since: u64) -> Answer<Vec<nvmlProcessUtilizationInfo_v1_t>> {
    let now = timestamp();
    let own = |context: &ContextRecord, counter: usize| context.counters[counter] * context.activity;
    let contexts: Vec<&ContextRecord> = state.contexts_at(Place::gpu(gpu)).filter(|context| own(context, 3) > 0.0).collect();
    if state.gpus[gpu].mig != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    if contexts.is_empty() || since >= now {
        return Err(Code::NOT_FOUND);
    }
    let share = |context: &ContextRecord, counter: usize| {
        let all: f64 = contexts.iter().map(|other| own(other, counter)).sum();
        percent(part(own(context, counter), all, state.gpus[gpu].engine.levels[counter]))
    };
    let sample = |context: &&ContextRecord| nvmlProcessUtilizationInfo_v1_t {
        timeStamp: now,
        pid: context.pid,
        smUtil: share(context, 3),
        memUtil: share(context, 2),
        encUtil: 0,
        decUtil: 0,
        jpgUtil: 0,
        ofaUtil: 0,
    };
    Ok(contexts.iter().map(sample).collect())
}
