//! Calls that go wrong on purpose, and machines that are not there.

use std::ptr::null_mut;
use std::time::Duration;

use carma_emu::state::{NONE, Text};
use carma_emu::{LIBRARY, Machine};
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;

use crate::support::{Emulated, until};

/// Sets a fault: a code of NVML, or 0 to hang.
fn fault(emulated: &Emulated, call: &str, gpu: u32, code: u32) {
    emulated.with(|state| {
        let fault = &mut state.faults[0];
        (fault.used, fault.gpu, fault.code, fault.call) = (1, gpu, code, Text::new(call));
    });
}

fn clear(emulated: &Emulated) {
    emulated.with(|state| state.faults[0].used = 0);
}

#[test]
fn a_call_answers_the_error_that_is_set_for_it() {
    let emulated = Emulated::new("2xA100-40GB");
    let nvml = emulated.nvml();
    let [first, second] = [0, 1].map(|gpu| nvml.device_by_index(gpu).unwrap());
    fault(&emulated, "nvmlDeviceGetPowerUsage", 1, 999);
    assert!(first.power_usage().is_ok() && second.temperature(nvml_wrapper::enum_wrappers::device::TemperatureSensor::Gpu).is_ok());
    assert!(matches!(second.power_usage(), Err(NvmlError::Unknown)));
    fault(&emulated, "", 0, 16);
    assert!(matches!(first.memory_info(), Err(NvmlError::ResetRequired)) && second.memory_info().is_ok());
    // A name without a version is that of all versions.
    fault(&emulated, "nvmlDeviceGetMemoryInfo", 0, 16);
    assert!(matches!(first.memory_info(), Err(NvmlError::ResetRequired)) && first.power_usage().is_ok());
    fault(&emulated, "nvmlDeviceGetCount_v2", NONE, 4);
    assert!(matches!(nvml.device_count(), Err(NvmlError::NoPermission)));
    clear(&emulated);
    assert!(first.memory_info().is_ok() && nvml.device_count().is_ok());
    fault(&emulated, "nvmlInit_v2", NONE, 18);
    let another = Nvml::builder().lib_path(emulated.machine.library().as_os_str()).init();
    assert!(matches!(another, Err(NvmlError::LibRmVersionMismatch)));
    assert!(first.memory_info().is_ok(), "the one that was open stays so");
}

#[test]
fn only_the_configured_call_hangs() {
    let emulated = Emulated::new("2xA100-40GB");
    let nvml = emulated.nvml();
    let [first, second] = [0, 1].map(|gpu| nvml.device_by_index(gpu).unwrap());
    fault(&emulated, "nvmlDeviceGetMemoryInfo_v2", 0, 0);
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| first.memory_info().map(|memory| memory.total));
        assert!(second.memory_info().is_ok());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!hanging.is_finished());
        clear(&emulated);
        assert_eq!(hanging.join().unwrap().unwrap(), 40 << 30);
    });
}

#[test]
fn without_a_machine_no_driver_is_loaded() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    // The library lies somewhere else, where no machine is.
    let elsewhere = tempfile::tempdir().unwrap();
    let library = elsewhere.path().join(LIBRARY);
    std::fs::copy(emulated.machine.library(), &library).unwrap();
    if std::env::var_os(carma_emu::VARIABLE).is_none() && !Machine::default_folder().join("state").exists() {
        assert!(matches!(Nvml::builder().lib_path(library.as_os_str()).init(), Err(NvmlError::DriverNotLoaded)));
    }
    // And one that is taken down answers so from then on.
    Machine::remove(emulated.machine.folder()).unwrap();
    assert!(matches!(nvml.device_count(), Err(NvmlError::DriverNotLoaded)));
    assert!(nvml.shutdown().is_ok());
}

#[test]
fn a_damaged_state_crashes_no_program() {
    let emulated = Emulated::new("1xT4-16GB");
    let nvml = emulated.nvml();
    // More processes than there is room for: none of them is listed.
    emulated.with(|state| state.header.contexts = u32::MAX - 7);
    let device = nvml.device_by_index(0).unwrap();
    until(|| (device.running_compute_processes_count().unwrap() == 0).then_some(()));
    // An instance on a GPU that cannot be cut.
    emulated.with(|state| {
        state.gpus[0].mig = 1;
        (state.gpus[0].instances[0].computes, state.gpus[0].instances[0].uuid) = (1, Text::new("MIG-0"));
    });
    assert!(matches!(nvml.device_by_uuid("MIG-0").unwrap().name(), Err(NvmlError::Unknown)));
    assert_eq!(nvml.device_count().unwrap(), 1, "and others are answered as before");
}

#[test]
#[expect(unsafe_code, reason = "nobody who means well calls like this")]
fn null_pointers_and_unknown_handles_are_invalid_and_change_nothing() {
    let emulated = Emulated::new("1xA100-40GB");
    let nvml = emulated.nvml();
    let (device, library) = (nvml.device_by_index(0).unwrap(), nvml.lib());
    emulated.with(|state| state.set_mig(0, true).unwrap());
    // SAFETY: NVML takes null for what is missing; handles are numbers to the stand-in.
    let answers = unsafe {
        let handle = device.handle();
        [
            library.nvmlDeviceCreateGpuInstance(handle, 9, null_mut()),
            library.nvmlDeviceSetMigMode(handle, 0, null_mut()),
            library.nvmlGpuInstanceDestroy(null_mut()),
            library.nvmlComputeInstanceDestroy(null_mut()),
            library.nvmlDeviceGetName(null_mut(), null_mut(), 0),
            library.nvmlEventSetFree(std::ptr::dangling_mut()),
            library.nvmlDeviceGetComputeRunningProcesses_v3(handle, null_mut(), null_mut()),
        ]
    };
    assert_eq!(answers, [nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT; 7]);
    assert!(emulated.with(|state| state.gpus[0].mig == 1 && state.instances(0).is_empty()));
}
