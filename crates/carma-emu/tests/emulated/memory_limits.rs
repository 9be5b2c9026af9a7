//! Memory limits of control groups, through the same calls as a real driver's.

use std::fs;
use std::path::Path;

use carma_emu::DriverVersion;
use carma_gpu::{DEADLINE, DeviceUuid, Driver, DriverError, LimitedUse, MemoryLimits};
use carma_testing::{ControlGroup, need};
use nvml_wrapper::error::NvmlError;

use crate::support::{Emulated, MIB, Sleeper, training};

/// A machine with driver 615, and its first GPU.
fn machine() -> (Emulated, Driver, DeviceUuid) {
    let emulated = Emulated::new("2xA100-40GB");
    emulated.machine.set_driver(DriverVersion::R615).unwrap();
    let driver = Driver::open(Some(&emulated.machine.library()), DEADLINE).unwrap();
    let gpu = emulated.with(|state| state.gpus[0].uuid.get().to_owned()).parse().unwrap();
    (emulated, driver, gpu)
}

#[test]
fn limits_are_set_read_back_counted_and_cleared() {
    let group = need!(ControlGroup::new("limits"));
    let (emulated, driver, gpu) = machine();
    assert!(driver.limits_memory(&gpu));
    assert_eq!(driver.memory_limits(&gpu, group.path()).unwrap(), None);
    let limits = MemoryLimits { soft: 4096 * MIB, hard: Some(8192 * MIB) };
    driver.set_memory_limits(&gpu, group.path(), limits).unwrap();
    let process = Sleeper::new();
    fs::write(group.procs(), process.pid().to_string()).unwrap();
    emulated.attach(training(process.pid(), 0, 5000 * MIB));
    emulated.attach(training(Sleeper::new().pid(), 0, 1000 * MIB));
    let used = driver.memory_limits(&gpu, group.path()).unwrap().unwrap();
    assert_eq!(used, LimitedUse { limits, used: 5000 * MIB });
    assert_eq!(used.borrowed(), 904 * MIB);
    // They are those of one GPU.
    let other = emulated.with(|state| state.gpus[1].uuid.get().to_owned()).parse().unwrap();
    assert_eq!(driver.memory_limits(&other, group.path()).unwrap(), None);
    let wider = MemoryLimits { soft: 6000 * MIB, hard: None };
    driver.set_memory_limits(&gpu, group.path(), wider).unwrap();
    assert_eq!(driver.memory_limits(&gpu, group.path()).unwrap().unwrap().limits, wider);
    driver.set_memory_limits(&gpu, group.path(), MemoryLimits::NONE).unwrap();
    assert_eq!(driver.memory_limits(&gpu, group.path()).unwrap(), None);
}

#[test]
fn limits_end_with_their_group() {
    let group = need!(ControlGroup::new("gone"));
    let path = group.path().to_owned();
    let (emulated, driver, gpu) = machine();
    driver.set_memory_limits(&gpu, &path, MemoryLimits { soft: MIB, hard: Some(MIB) }).unwrap();
    drop(group);
    assert!(emulated.with(|state| state.memory_limits(0, &path)).is_none());
    let again = need!(ControlGroup::new("gone"));
    assert_eq!(again.path(), path);
    assert_eq!(driver.memory_limits(&gpu, &path).unwrap(), None, "a new group of that name");
}

#[test]
fn wrong_limits_are_refused_with_nvmls_errors() {
    let group = need!(ControlGroup::new("wrong"));
    let (emulated, driver, gpu) = machine();
    let error = |group: &Path, soft: u64, hard: u64| match driver.set_memory_limits(&gpu, group, MemoryLimits { soft, hard: Some(hard) }) {
        Err(DriverError::Call { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error(group.path(), 2 * MIB, MIB), NvmlError::InvalidArg), "soft above hard");
    assert!(matches!(error(group.path(), MIB, 50_000 * MIB), NvmlError::InvalidArg), "more than the GPU has");
    let folder = tempfile::tempdir().unwrap();
    for path in [Path::new("/nonexistent"), folder.path()] {
        assert!(matches!(error(path, MIB, MIB), NvmlError::OperatingSystem), "{} is no control group", path.display());
    }
    // Drivers before 615 do not have the calls.
    emulated.machine.set_driver(DriverVersion::R575).unwrap();
    let refused = driver.set_memory_limits(&gpu, group.path(), MemoryLimits::NONE);
    assert!(matches!(refused, Err(DriverError::NotSupported { .. })), "{refused:?}");
    assert!(!driver.limits_memory(&gpu));
    // MIG instances have none either.
    emulated.machine.set_driver(DriverVersion::R615).unwrap();
    emulated.partition(0, &["3g.20gb"]);
    let instance = emulated.with(|state| state.gpus[0].instances[0].uuid.get().to_owned()).parse().unwrap();
    let refused = driver.set_memory_limits(&instance, group.path(), MemoryLimits { soft: MIB, hard: None });
    assert!(matches!(refused, Err(DriverError::NotSupported { .. })), "{refused:?}");
}
