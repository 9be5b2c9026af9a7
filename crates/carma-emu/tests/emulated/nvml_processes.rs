//! Processes: who is there, with how much memory, and that nothing of them stays behind.

use std::ffi::c_uint;
use std::process::Command;
use std::time::{Duration, Instant};

use carma_emu::state::{ContextKind, ContextRecord, Place};
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t, nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE, nvmlReturn_t,
};
use proptest::prelude::*;

use crate::support::{Emulated, MIB, Sleeper, training};

fn listed(list: Result<Vec<nvml_wrapper::struct_wrappers::device::ProcessInfo>, NvmlError>) -> Vec<(u32, u64)> {
    let memory = |used| match used {
        UsedGpuMemory::Used(bytes) => bytes,
        UsedGpuMemory::Unavailable => unreachable!("it is always known"),
    };
    let mut all: Vec<(u32, u64)> = list.unwrap().into_iter().map(|process| (process.pid, memory(process.used_gpu_memory))).collect();
    all.sort_unstable();
    all
}

#[test]
fn each_list_holds_its_kind_of_processes() {
    let emulated = Emulated::new("2xA100-40GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.running_compute_processes_count().unwrap(), 0);
    let processes: [Sleeper; 4] = std::array::from_fn(|_| Sleeper::new());
    let kinds = [ContextKind::Compute, ContextKind::Graphics, ContextKind::MpsClient, ContextKind::MpsServer];
    for (place, (process, kind)) in processes.iter().zip(kinds).enumerate() {
        emulated.attach(ContextRecord { kind: kind as u32, ..training(process.pid(), 0, (place as u64 + 1) * 100 * MIB) });
    }
    let expected = |places: &[usize]| {
        let mut all: Vec<(u32, u64)> = places.iter().map(|place| (processes[*place].pid(), (*place as u64 + 1) * 100 * MIB)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(listed(device.running_compute_processes()), expected(&[0, 2, 3]));
    assert_eq!(listed(device.running_graphics_processes()), expected(&[1]));
    assert_eq!(listed(device.mps_running_compute_processes()), expected(&[2]));
    assert_eq!(device.running_compute_processes_count().unwrap(), 3);
    assert!(nvml.device_by_index(1).unwrap().running_compute_processes().unwrap().is_empty());
    // The entries of the first version are shorter than those of the second, which are those of the third.
    let (first, second) = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2");
    let empty = nvmlProcessInfo_v1_t { pid: 0, usedGpuMemory: 0 };
    assert_eq!(earlier(&device, first, empty, |entry| (entry.pid, entry.usedGpuMemory)), expected(&[0, 2, 3]));
    let empty = nvmlProcessInfo_v2_t { pid: 0, usedGpuMemory: 0, gpuInstanceId: 0, computeInstanceId: 0 };
    assert_eq!(earlier(&device, second, empty, |entry| (entry.pid, entry.usedGpuMemory)), expected(&[0, 2, 3]));
    assert!(nvml.sys_process_name(processes[0].pid(), 64).unwrap().ends_with("sleep"));
}

/// A list as programs of old ask for it. One that does not fit says how long it is.
#[expect(unsafe_code, reason = "nobody wraps these versions any more")]
fn earlier<T: Copy>(device: &Device<'_>, call: &str, empty: T, read: impl Fn(&T) -> (u32, u64)) -> Vec<(u32, u64)> {
    type List<T> = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut T) -> nvmlReturn_t;
    // SAFETY: the symbol has this type, and the buffer has room for the given number of entries.
    unsafe {
        let list = device.nvml().lib().__library.get::<List<T>>(call.as_bytes()).unwrap();
        let mut count = 0;
        assert_eq!(list(device.handle(), &raw mut count, std::ptr::null_mut()), nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);
        let mut entries = vec![empty; count as usize];
        assert_eq!(list(device.handle(), &raw mut count, entries.as_mut_ptr()), 0);
        let mut all: Vec<(u32, u64)> = entries.iter().map(read).collect();
        all.sort_unstable();
        all
    }
}

#[test]
fn process_utilisation_sums_to_that_of_the_gpu() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(0).unwrap();
    assert!(matches!(device.process_utilization_stats(0), Err(NvmlError::NotFound)), "nothing runs");
    let processes: [Sleeper; 2] = std::array::from_fn(|_| Sleeper::new());
    for process in &processes {
        emulated.attach(training(process.pid(), 0, 100 * MIB));
    }
    let samples = device.process_utilization_stats(0).unwrap();
    let gpu = device.utilization_rates().unwrap();
    let sums = samples.iter().fold((0, 0), |(sm, memory), sample| (sm + sample.sm_util, memory + sample.mem_util));
    assert_eq!(samples.len(), 2);
    assert!(samples.iter().all(|sample| sample.sm_util > 0 && processes.iter().any(|process| process.pid() == sample.pid)));
    // Each is rounded to whole percent.
    assert!(sums.0.abs_diff(gpu.gpu) <= 2 && sums.1 <= gpu.memory + 2, "{sums:?} of {gpu:?}");
}

#[test]
fn a_thousand_processes_leave_no_trace() {
    let emulated = Emulated::new("4xA100-40GB");
    let nvml = emulated.nvml();
    for round in 0..20 {
        let processes: Vec<Sleeper> = (0..50).map(|_| Sleeper::new()).collect();
        processes
            .iter()
            .enumerate()
            .for_each(|(place, process)| emulated.attach(training(process.pid(), place % 4, (round + 1) * 10 * MIB)));
        let device = nvml.device_by_index(1).unwrap();
        assert_eq!(device.running_compute_processes_count().unwrap(), 13);
        assert_eq!(device.memory_info().unwrap().used, 13 * (round + 1) * 10 * MIB);
        drop(processes);
        // They are removed within milliseconds of a call.
        let patience = Instant::now() + Duration::from_secs(20);
        while (0..4).any(|gpu| nvml.device_by_index(gpu).unwrap().running_compute_processes_count().unwrap() > 0) {
            assert!(Instant::now() < patience, "processes that are gone stay in the lists");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert_eq!(emulated.with(|state| (state.contexts().len(), state.header.contexts)), (0, 0));
    for gpu in 0..4 {
        let device = nvml.device_by_index(gpu).unwrap();
        assert_eq!(device.memory_info().unwrap().used, 0);
        assert_eq!(device.utilization_rates().unwrap().gpu, 0);
        assert_eq!(device.power_usage().unwrap(), 52_000);
    }
}

/// Threads ask without a pause while the process forks: some children are forked while a thread has the state's lock, and stay.
const FORKING: &str = r"
import ctypes, os, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
library.nvmlInit_v2()
forked, parent = threading.Event(), os.getpid()
def ask():
    count = ctypes.c_uint()
    while not forked.is_set():
        library.nvmlDeviceGetCount_v2(ctypes.byref(count))
threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(60):
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.05)
        os._exit(0)
forked.set()
[thread.join(20) for thread in threads]
os._exit(any(thread.is_alive() for thread in threads))
";

#[test]
fn a_child_that_is_forked_at_any_moment_keeps_no_lock() {
    let emulated = Emulated::new("1xA100-40GB");
    let mut python = Command::new("python3");
    let ended = python.args(["-W", "ignore", "-c", FORKING]).arg(emulated.machine.library()).status().unwrap();
    assert!(ended.success(), "threads hang on a lock that a child has");
}

/// A handler that does not have calls restarted, as Python's do not, and a timer that calls it while others hold the lock.
const INTERRUPTED: &str = r"
import ctypes, signal, sys, threading
library = ctypes.CDLL(sys.argv[1])
library.nvmlInit_v2()
def ask(times):
    count = ctypes.c_uint()
    return {library.nvmlDeviceGetCount_v2(ctypes.byref(count)) for _ in range(times)}
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
threads = [threading.Thread(target=ask, args=(3000,)) for _ in range(4)]
[thread.start() for thread in threads]
answers = ask(3000)
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(answers != {0})
";

#[test]
fn a_signal_while_waiting_for_the_lock_is_no_error() {
    let emulated = Emulated::new("1xA100-40GB");
    let ended = Command::new("python3").args(["-c", INTERRUPTED]).arg(emulated.machine.library()).status().unwrap();
    assert!(ended.success(), "a call failed");
}

#[test]
fn memory_is_what_processes_hold_and_what_leaked() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    let device = nvml.device_by_index(0).unwrap();
    proptest!(|(held in prop::collection::vec(0_u64..20_000, 0..8), leaked in 0_u64..50_000)| {
        emulated.with(|state| {
            state.detach(|_| true);
            state.gpus[0].leaked = leaked * MIB;
        });
        for mib in &held {
            emulated.attach(training(std::process::id(), 0, mib * MIB));
        }
        let memory = device.memory_info().unwrap();
        let wanted = (held.iter().sum::<u64>() + leaked) * MIB;
        prop_assert_eq!(memory.used, wanted.min(memory.total - memory.reserved));
        prop_assert_eq!(memory.used + memory.free + memory.reserved, memory.total);
        prop_assert_eq!(emulated.with(|state| state.memory(Place::gpu(0)).used), wanted);
        let lists: u64 = listed(device.running_compute_processes()).iter().map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(lists, held.iter().sum::<u64>() * MIB);
    });
}
