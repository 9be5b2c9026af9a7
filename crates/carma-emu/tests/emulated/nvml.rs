//! Every number that the library gives, against the state.

use carma_emu::fault::{Fault, ThrottleReason};
use carma_emu::readings::{IDLE, power_limits};
use carma_emu::state::Place;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode, EccCounter, MemoryError, TemperatureSensor, TopologyLevel};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper_sys::bindings::field_id::{NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_NVLINK_LINK_COUNT, NVML_FI_DEV_POWER_INSTANT};

use crate::support::{Emulated, MIB, Sleeper, training};

fn not_supported<T>(answer: &Result<T, NvmlError>) -> bool {
    matches!(answer, Err(NvmlError::NotSupported))
}

#[test]
fn every_number_comes_from_the_state() {
    for kind in ["A100-40GB", "H100-80GB", "V100-16GB", "P100-16GB", "RTX-3090-24GB"] {
        let emulated = Emulated::new(&format!("2x{kind}"));
        let (nvml, job) = (emulated.nvml(), Sleeper::new());
        emulated.attach(training(job.pid(), 1, 3000 * MIB));
        emulated.with(|state| (state.gpus[1].ecc_corrected, state.gpus[1].leaked) = (5, 100 * MIB));
        assert_eq!(nvml.device_count().unwrap(), 2);
        for gpu in 0..2 {
            let device = nvml.device_by_index(gpu as u32).unwrap();
            let (readings, memory, record, profile) =
                emulated.with(|state| (state.readings(gpu), state.memory(Place::gpu(gpu)), state.gpus[gpu], state.profile(gpu)));
            let facts = &profile.facts;
            assert_eq!((device.name().unwrap(), device.uuid().unwrap()), (facts.product.clone(), record.uuid.get().to_owned()));
            assert_eq!((device.index().unwrap(), device.minor_number().unwrap()), (gpu as u32, gpu as u32));
            let seen = device.memory_info().unwrap();
            assert_eq!((seen.total, seen.reserved, seen.used, seen.free), (memory.total, memory.reserved, memory.used, memory.free()));
            assert_eq!(seen.total, seen.used + seen.free + seen.reserved);
            let busy = device.utilization_rates().unwrap();
            assert_eq!((busy.gpu, busy.memory), (readings.utilisation, readings.memory_utilisation));
            assert_eq!(busy.gpu > 0, gpu == 1);
            assert_eq!(device.power_usage().unwrap(), readings.milliwatts);
            assert!(readings.milliwatts >= (profile.kind.idle_watts * 1000.0) as u32);
            let limits = device.power_management_limit_constraints().unwrap();
            assert_eq!(limits.min_limit..=limits.max_limit, power_limits(profile.kind));
            assert_eq!(device.power_management_limit().unwrap(), record.power_limit);
            assert_eq!(device.enforced_power_limit().unwrap(), record.power_limit);
            assert_eq!(device.temperature(TemperatureSensor::Gpu).unwrap(), readings.temperature);
            assert_eq!(
                (device.clock_info(Clock::SM).unwrap(), device.clock_info(Clock::Memory).unwrap()),
                (readings.sm_clock, readings.memory_clock)
            );
            assert_eq!(device.max_clock_info(Clock::SM).unwrap(), facts.sm_clock);
            assert_eq!(device.performance_state().unwrap() as u32, readings.performance_state);
            let idle = device.current_throttle_reasons().unwrap().contains(ThrottleReasons::GPU_IDLE);
            assert_eq!(idle, readings.throttle & IDLE != 0);
            assert_eq!(device.fan_speed(0).ok(), readings.fan);
            assert_eq!(device.num_fans().unwrap(), u32::from(facts.fan));
            let pci = device.pci_info().unwrap();
            assert_eq!(
                (pci.bus, pci.pci_device_id, pci.bus_id),
                (record.bus, facts.device_id, format!("00000000:{:02X}:00.0", record.bus))
            );
            let capability = device.cuda_compute_capability().unwrap();
            assert_eq!([capability.major, capability.minor].map(i32::cast_unsigned), facts.capability);
            assert_eq!(device.num_cores().unwrap(), facts.cores);
            assert_eq!(device.is_ecc_enabled().is_ok(), facts.ecc);
            let corrected = device.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile).ok();
            assert_eq!(corrected, facts.ecc.then_some(record.ecc_corrected));
            assert_eq!(device.serial().is_ok(), facts.ecc);
            assert!(not_supported(&device.pcie_throughput(nvml_wrapper::enum_wrappers::device::PcieUtilCounter::Send)));
            let wanted = [NVML_FI_DEV_POWER_INSTANT, NVML_FI_DEV_NVLINK_LINK_COUNT, NVML_FI_DEV_MEMORY_TEMP].map(FieldId);
            let fields = device.field_values_for(&wanted).unwrap();
            let value =
                |place: usize| fields[place].as_ref().ok().and_then(|field| field.value.as_ref().ok()).map(|value| format!("{value:?}"));
            assert_eq!(value(0), Some(format!("U32({})", readings.milliwatts)));
            assert_eq!(value(1), Some(format!("U32({})", facts.nvlinks)));
            assert_eq!(value(2), facts.ecc.then(|| format!("U32({})", readings.memory_temperature)));
        }
    }
}

#[test]
fn energy_uses_the_emulated_time() {
    let emulated = Emulated::new("1xV100-16GB,1xP100-16GB");
    let nvml = emulated.nvml();
    let millijoules = || emulated.with(|state| state.gpus[0].engine.joules * 1000.0);
    let before = millijoules();
    let seen = nvml.device_by_index(0).unwrap().total_energy_consumption().unwrap() as f64;
    assert!(before - 1.0 <= seen && seen <= millijoules() && before > 0.0);
    assert!(not_supported(&nvml.device_by_index(1).unwrap().total_energy_consumption()), "counted from Volta on");
}

#[test]
fn a_device_is_found_by_each_of_its_names() {
    let emulated = Emulated::new("3xA100-40GB");
    let nvml = emulated.nvml();
    let second = nvml.device_by_index(1).unwrap();
    let (uuid, serial, bus) = (second.uuid().unwrap(), second.serial().unwrap(), second.pci_info().unwrap().bus_id);
    assert_eq!(nvml.device_by_uuid(uuid.as_str()).unwrap().index().unwrap(), 1);
    #[expect(deprecated, reason = "programs still use it")]
    let by_serial = nvml.device_by_serial(serial.as_str()).unwrap();
    assert_eq!(by_serial.index().unwrap(), 1);
    for written in [bus.clone(), bus[4..].to_owned(), bus[9..].to_lowercase()] {
        assert_eq!(nvml.device_by_pci_bus_id(written.as_str()).unwrap().index().unwrap(), 1, "{written}");
    }
    assert!(matches!(nvml.device_by_uuid("GPU-none"), Err(NvmlError::NotFound)));
    assert!(matches!(nvml.device_by_index(3), Err(NvmlError::InvalidArg)));
}

#[test]
fn modes_and_limits_are_set_and_read_back() {
    let emulated = Emulated::new("1xA100-40GB");
    let (nvml, job) = (emulated.nvml(), Sleeper::new());
    let mut device = nvml.device_by_index(0).unwrap();
    device.set_compute_mode(ComputeMode::ExclusiveProcess).unwrap();
    assert_eq!(device.compute_mode().unwrap(), ComputeMode::ExclusiveProcess);
    assert_eq!(emulated.with(|state| state.gpus[0].compute_mode), 3);
    emulated.attach(training(job.pid(), 0, 1000 * MIB));
    device.set_power_management_limit(100_000).unwrap();
    assert_eq!(device.power_usage().unwrap(), 100_000, "no more than it may");
    assert!(device.current_throttle_reasons().unwrap().contains(ThrottleReasons::SW_POWER_CAP));
    let clock = || device.clock_info(Clock::SM).unwrap();
    let before = clock();
    emulated.with(|state| Fault::Throttle { gpu: 0, reason: ThrottleReason::Thermal }.inject(state)).unwrap();
    assert!(device.current_throttle_reasons().unwrap().contains(ThrottleReasons::SW_THERMAL_SLOWDOWN));
    assert_eq!(clock(), before / 2);
    assert!(matches!(device.set_power_management_limit(500_000), Err(NvmlError::InvalidArg)));
}

#[test]
fn an_instance_answers_for_itself() {
    let emulated = Emulated::new("1xA100-40GB");
    let (nvml, job, other) = (emulated.nvml(), Sleeper::new(), Sleeper::new());
    emulated.partition(0, &["1g.5gb", "3g.20gb"]);
    for (instance, process, bytes) in [(0, &job, 1000 * MIB), (1, &other, 2000 * MIB)] {
        emulated.attach(carma_emu::state::ContextRecord { instance, ..training(process.pid(), 0, bytes) });
    }
    let uuid = emulated.with(|state| state.gpus[0].instances[1].uuid.get().to_owned());
    let instance = nvml.device_by_uuid(uuid.as_str()).unwrap();
    assert_eq!((instance.uuid().unwrap(), instance.index().unwrap()), (uuid, 1));
    assert_eq!(instance.name().unwrap(), "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
    let memory = instance.memory_info().unwrap();
    assert_eq!((memory.total, memory.used), (19_968 * MIB, 2000 * MIB));
    let processes = instance.running_compute_processes().unwrap();
    assert_eq!(processes.iter().map(|process| (process.pid, process.gpu_instance_id)).collect::<Vec<_>>(), [(other.pid(), Some(8))]);
    let gpu = nvml.device_by_index(0).unwrap();
    assert_eq!(gpu.memory_info().unwrap().used, 3000 * MIB);
    assert_eq!(gpu.running_compute_processes().unwrap().len(), 2);
    assert!(
        not_supported(&instance.utilization_rates()) && not_supported(&gpu.utilization_rates()) && not_supported(&instance.power_usage())
    );
    assert!(gpu.power_usage().unwrap() > 52_000);
}

#[test]
fn gpus_are_connected_alike_from_both_sides() {
    let emulated = Emulated::new("4xA100-40GB");
    let nvml = emulated.nvml();
    let device = |gpu: u32| nvml.device_by_index(gpu).unwrap();
    let level = |a: u32, b: u32| device(a).topology_common_ancestor(device(b)).unwrap();
    assert_eq!((level(0, 1), level(0, 2), level(2, 0)), (TopologyLevel::Multiple, TopologyLevel::Node, TopologyLevel::Node));
    assert_eq!(device(0).topology_nearest_gpus(TopologyLevel::Multiple).unwrap().len(), 1);
    let buses: Vec<u32> = (0..4).map(|gpu| device(gpu).pci_info().unwrap().bus).collect();
    let links = |from: usize, to: usize| {
        let device = device(from as u32);
        (0..12).filter(|link| device.link_wrapper_for(*link).remote_pci_info().is_ok_and(|pci| pci.bus == buses[to])).count()
    };
    assert!((0..4).all(|from| (0..4).all(|to| links(from, to) == if from == to { 0 } else { 4 })));
    let first = device(0);
    assert!(first.link_wrapper_for(0).is_active().unwrap() && first.link_wrapper_for(12).is_active().is_err());
    assert!(not_supported(&Emulated::new("1xT4-16GB").nvml().device_by_index(0).unwrap().link_wrapper_for(0).is_active()));
}
