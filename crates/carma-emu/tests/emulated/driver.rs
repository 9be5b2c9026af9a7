//! carma-gpu on emulated GPUs: what is there, what is seen, and every fault as the right event.

use std::time::{Duration, Instant};

use carma_core::{Fraction, MiB, Watts};
use carma_emu::Machine;
use carma_emu::fault::{self, CallAnswer, Fault};
use carma_emu::state::{ContextKind, ContextRecord, State};
use carma_gpu::{Blame, DeviceUuid, Driver, DriverError, Incident, Monitor, PowerLimitChange, ProcessActivity, ProcessKind, Unfit, Xid};

use crate::support::{Emulated, LONG, Sleeper, training, until};

const SHORT: Duration = Duration::from_millis(300);

/// A machine, and its driver as CARMA opens it.
struct Bench {
    emulated: Emulated,
    driver: Driver,
}

impl Bench {
    fn new(gpus: &str) -> Self {
        let emulated = Emulated::new(gpus);
        let driver = Driver::open(Some(&emulated.machine.library()), SHORT).unwrap();
        Self { emulated, driver }
    }

    fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> R {
        self.emulated.with(act)
    }

    fn uuids(&self) -> Vec<DeviceUuid> {
        self.with(|state| state.gpus.iter().map(|gpu| gpu.uuid.get().parse().unwrap()).collect())
    }

    fn inject(&self, fault: &Fault) {
        self.with(|state| fault.inject(state)).unwrap();
    }

    /// Calls go wrong: those of this name, or all.
    fn fault(&self, gpu: Option<usize>, call: Option<&str>, answer: CallAnswer) {
        self.with(|state| fault::clear(state, None));
        self.inject(&Fault::Call { gpu, call: call.map(str::to_owned), answer });
    }
}

#[test]
fn the_inventory_is_in_pci_order_and_without_display_cards() {
    let bench = Bench::new("2xA100-40GB,1xRTX-2080Ti-11GB,1xH100-80GB");
    bench.with(|state| state.gpus[2].display = 1);
    let inventory = bench.driver.inventory().unwrap();
    let names: Vec<&str> = inventory.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    assert_eq!(names, ["NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3"]);
    assert!(inventory.gpus.is_sorted_by_key(|gpu| gpu.pci));
    assert_eq!((inventory.left_out[0].index, &inventory.left_out[0].reason), (2, &Unfit::DisplayOnly));
    let first = &inventory.gpus[0];
    assert_eq!((first.uuid.clone(), first.memory, first.capability.to_string()), (bench.uuids()[0].clone(), MiB(40_960), "8.0".to_owned()));
    assert_eq!((first.mig, first.power_limit.map(|watts| watts.0)), (Some(false), Some(400.0)));
}

#[test]
fn processes_of_all_kinds_are_seen_with_their_memory() {
    let bench = Bench::new("2xA100-40GB");
    let all = [Sleeper::new(), Sleeper::new(), Sleeper::new()];
    let kinds = [(ContextKind::Compute, 3 << 30), (ContextKind::MpsClient, 2 << 30), (ContextKind::Graphics, 1 << 20)];
    for (process, (kind, bytes)) in all.iter().zip(kinds) {
        bench.emulated.attach(ContextRecord { kind: kind as u32, ..training(process.pid(), 0, bytes) });
    }
    let (observations, events) = Monitor::default().sample(&bench.driver, &bench.uuids());
    assert!(events.is_empty());
    let reading = observations[0].reading.as_ref().unwrap();
    let mut seen: Vec<_> = reading.processes.iter().map(|process| (process.kind, process.memory)).collect();
    seen.sort_unstable();
    assert_eq!(seen, [(ProcessKind::Graphics, Some(MiB(1))), (ProcessKind::Compute, Some(MiB(3072))), (ProcessKind::Mps, Some(MiB(2048)))]);
    assert_eq!((reading.memory_used, reading.memory_total), (MiB(3072 + 2048 + 1), MiB(40_960)));
    assert!(reading.power.unwrap().0 > 100.0 && reading.utilisation.unwrap().get() > 0.5);
    let idle = observations[1].reading.as_ref().unwrap();
    assert_eq!((idle.memory_used, idle.processes.len()), (MiB::ZERO, 0));
    drop(all);
    // Those that ended are noticed within milliseconds.
    let used = || Monitor::default().sample(&bench.driver, &bench.uuids()).0[0].reading.as_ref().unwrap().memory_used;
    until(|| (used() == MiB::ZERO).then_some(()));
}

#[test]
fn working_and_idle_processes_are_distinguished() {
    let bench = Bench::new("2xA100-40GB");
    let ask = |gpu: usize| bench.driver.process_activity(&[bench.uuids()[gpu].clone()], LONG).remove(0).1;
    let [works, holds] = [Sleeper::new(), Sleeper::new()];
    assert_eq!(ask(0).unwrap().of(works.pid()), Some(Fraction::ZERO), "nobody does anything");
    bench.emulated.attach(training(works.pid(), 0, 3 << 30));
    bench.emulated.attach(ContextRecord { busy: 0, counters: [0.0; 4], ..training(holds.pid(), 0, 3 << 30) });
    let activity = ask(0).unwrap();
    assert!(activity.of(works.pid()).unwrap().get() > 0.5, "{activity:?}");
    assert_eq!(activity.of(holds.pid()), Some(Fraction::ZERO));
    // It stops.
    bench.with(|state| state.contexts_mut().iter_mut().for_each(|context| (context.busy, context.counters) = (0, [0.0; 4])));
    assert_eq!(ask(0).unwrap().of(works.pid()), Some(Fraction::ZERO));
    // Drivers tell nothing of GPUs that are cut, and old ones of none.
    bench.emulated.partition(1, &["3g.20gb"]);
    assert_eq!(ask(1).unwrap(), ProcessActivity::Unknown);
    bench.fault(Some(0), Some("nvmlDeviceGetProcessUtilization"), fails("FUNCTION_NOT_FOUND"));
    assert_eq!(ask(0).unwrap(), ProcessActivity::Unknown);
    bench.fault(Some(0), None, fails("GPU_IS_LOST"));
    assert!(matches!(ask(0), Err(DriverError::Lost(_))));
}

#[test]
fn a_gpu_at_its_limit_of_power_draws_no_more_and_is_slower() {
    let bench = Bench::new("1xA100-40GB");
    let (uuid, process) = (bench.uuids().remove(0), Sleeper::new());
    bench.emulated.attach(training(process.pid(), 0, 3 << 30));
    let seen = || {
        let reading = Monitor::default().sample(&bench.driver, std::slice::from_ref(&uuid)).0.remove(0).reading.unwrap();
        (reading.power.unwrap(), bench.with(|state| state.contexts()[0].speed))
    };
    let (watts, speed) = seen();
    let limit = Watts(120.0);
    assert!(watts > limit, "{watts}");
    let change = PowerLimitChange::plan(&bench.driver, &uuid, limit, None).unwrap();
    change.make(&bench.driver).unwrap();
    let expected = carma_sim::capped_speed(carma_sim::GpuType::find("A100-40GB").unwrap(), watts.0, limit.0);
    let (capped, slower) = seen();
    assert!(capped == limit && slower < speed && (slower / speed - expected).abs() < 0.01, "{capped} {slower} {speed} {expected}");
    change.restore(&bench.driver).unwrap();
    assert_eq!(seen(), (watts, speed));
}

#[test]
fn a_hanging_call_delays_only_its_caller() {
    let bench = Bench::new("3xA100-40GB");
    let (uuids, mut monitor) = (bench.uuids(), Monitor::default());
    monitor.sample(&bench.driver, &uuids);
    bench.fault(Some(1), None, CallAnswer::Hangs);
    let began = Instant::now();
    let (observations, events) = monitor.sample(&bench.driver, &uuids);
    // Twice the deadline, for a busy machine; the call itself hangs for as long as the fault is set.
    assert!(began.elapsed() < 2 * SHORT, "{:?}", began.elapsed());
    assert!(observations[0].reading.is_ok() && observations[2].reading.is_ok());
    assert!(matches!(observations[1].reading, Err(DriverError::TimedOut { .. })));
    assert_eq!(
        events.iter().map(|event| (event.device.as_ref(), event.incident)).collect::<Vec<_>>(),
        [(Some(&uuids[1]), Incident::Hanging)]
    );
    // No caller waits for it any more.
    let (observations, events) = monitor.sample(&bench.driver, &uuids);
    assert!(matches!(observations[1].reading, Err(DriverError::Hanging { .. })) && events.is_empty());
    bench.with(|state| fault::clear(state, None));
    let back = until(|| monitor.sample(&bench.driver, &uuids).1.pop());
    assert_eq!((back.device.as_ref(), back.incident), (Some(&uuids[1]), Incident::Back));
}

#[test]
fn a_lost_gpu_and_its_recovery_are_reported_once() {
    let bench = Bench::new("2xA100-40GB");
    let (uuids, mut monitor) = (bench.uuids(), Monitor::default());
    monitor.sample(&bench.driver, &uuids);
    bench.inject(&Fault::Lost { gpu: 0 });
    let (_, events) = monitor.sample(&bench.driver, &uuids);
    assert_eq!((events.len(), events[0].device.as_ref(), events[0].incident), (1, Some(&uuids[0]), Incident::Lost));
    assert!(monitor.sample(&bench.driver, &uuids).1.is_empty());
    let left_out = bench.driver.inventory().unwrap().left_out;
    assert!(matches!(&left_out[..], [gpu] if gpu.index == 0 && gpu.reason == Unfit::Lost));
    bench.with(|state| fault::recover_gpu(state, 0));
    let (_, events) = monitor.sample(&bench.driver, &uuids);
    assert_eq!(events.iter().map(|event| event.incident).collect::<Vec<_>>(), [Incident::Back]);
}

#[test]
fn a_hanging_or_lost_gpu_does_not_hide_others() {
    let bench = Bench::new("3xA100-40GB");
    bench.fault(Some(1), None, CallAnswer::Hangs);
    let began = Instant::now();
    let inventory = bench.driver.inventory().unwrap();
    assert!(began.elapsed() < 3 * SHORT, "{:?}", began.elapsed());
    assert_eq!(inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>(), [bench.uuids()[0].clone(), bench.uuids()[2].clone()]);
    assert!(matches!(&inventory.left_out[..], [gpu] if gpu.index == 1));
    // Queries that concern no GPU still work.
    assert_eq!(bench.driver.count().unwrap(), 3);
}

#[test]
fn gpus_are_found_without_uuids_beside_a_lost_gpu() {
    let bench = Bench::new("2xA100-40GB");
    bench.emulated.partition(1, &["3g.20gb"]);
    bench.fault(None, Some("nvmlDeviceGetHandleByUUID"), fails("GPU_IS_LOST"));
    bench.with(|state| state.gpus[0].lost = 1);
    let instance = bench.with(|state| state.gpus[1].instances[0].uuid.get().parse().unwrap());
    let [lost, well] = [0, 1].map(|gpu| bench.uuids()[gpu].clone());
    let (observations, _) = Monitor::default().sample(&bench.driver, &[lost, well, instance]);
    let found: Vec<bool> = observations.iter().map(|observation| observation.reading.is_ok()).collect();
    assert_eq!(found, [false, true, true], "{observations:?}");
}

#[test]
fn errors_of_single_calls_are_distinguished() {
    let bench = Bench::new("1xA100-40GB");
    let read = || Monitor::default().sample(&bench.driver, &bench.uuids()).0.remove(0).reading;
    // What is not supported is absent, what is not permitted too; the rest is still read.
    bench.fault(Some(0), Some("nvmlDeviceGetPowerUsage"), fails("NOT_SUPPORTED"));
    let reading = read().unwrap();
    assert!(reading.power.is_none() && reading.utilisation.is_some());
    // Another failing sensor does not hide the rest, while the GPU is present.
    for code in ["INVALID_ARGUMENT", "LIB_RM_VERSION_MISMATCH", "INSUFFICIENT_RESOURCES", "UNKNOWN"] {
        bench.fault(Some(0), Some("nvmlDeviceGetTemperature"), fails(code));
        let reading = read().unwrap();
        assert!(reading.temperature.is_none() && reading.power.is_some());
    }
    bench.fault(Some(0), Some("nvmlDeviceGetTemperature"), fails("GPU_IS_LOST"));
    assert!(matches!(read(), Err(DriverError::Lost(_))));
    // Processes are not a sensor value: without them, the GPU must not count as idle.
    bench.fault(Some(0), Some("nvmlDeviceGetComputeRunningProcesses_v3"), fails("UNKNOWN"));
    assert!(matches!(read(), Err(DriverError::Call { .. })));
    bench.fault(Some(0), Some("nvmlDeviceGetMemoryInfo_v2"), fails("UNKNOWN"));
    assert!(matches!(read(), Err(DriverError::Call { .. })));
    bench.fault(None, Some("nvmlDeviceGetMemoryInfo_v2"), fails("GPU_IS_LOST"));
    assert!(matches!(read(), Err(DriverError::Lost(_))));
}

/// Something that the driver reports.
type DriverReport = Box<dyn Fn(&Bench)>;

#[test]
fn driver_reports_arrive_as_events() {
    let bench = Bench::new("2xA100-40GB,1xRTX-2080Ti-11GB");
    let uuids = bench.uuids();
    let watch = bench.driver.watch(&uuids).unwrap();
    let instances = |bench: &Bench| bench.with(|state| state.set_mig(0, true)).unwrap();
    let strike = |fault: Fault| move |bench: &Bench| bench.inject(&fault);
    let ecc = |corrected| strike(Fault::Ecc { gpu: 1, corrected, count: 1 });
    let cases: [(DriverReport, usize, &[Incident]); 6] = [
        (Box::new(strike(Fault::Xid { gpu: 1, code: 31, pid: None })), 1, &[Incident::Xid(Xid(31))]),
        (Box::new(strike(Fault::Xid { gpu: 0, code: 999, pid: None })), 0, &[Incident::Xid(Xid::UNKNOWN)]),
        (Box::new(ecc(true)), 1, &[Incident::EccCorrected]),
        (Box::new(ecc(false)), 1, &[Incident::EccUncorrected, Incident::Xid(Xid(48))]),
        (Box::new(instances), 0, &[Incident::InstancesChanged]),
        // A lost GPU no longer tells its name; the event still says which it was.
        (Box::new(strike(Fault::Lost { gpu: 1 })), 1, &[Incident::Xid(Xid(79))]),
    ];
    for (happen, gpu, incidents) in cases {
        happen(&bench);
        for incident in incidents {
            let event = watch.next(LONG).unwrap();
            assert_eq!((event.device.as_ref(), event.incident), (Some(&uuids[gpu]), *incident));
        }
    }
    assert_eq!((Xid(79).blame(), Xid(31).blame(), Xid(48).blame()), (Blame::Lost, Blame::Program, Blame::Gpu));
}

#[test]
fn a_gpu_that_hangs_keeps_no_other_from_being_watched() {
    let bench = Bench::new("3xA100-40GB");
    let uuids = bench.uuids();
    bench.fault(Some(1), None, CallAnswer::Hangs);
    let watch = bench.driver.watch(&uuids).unwrap();
    assert_eq!(watch.silent, [uuids[1].clone()]);
    bench.inject(&Fault::Xid { gpu: 2, code: 31, pid: None });
    assert_eq!(watch.next(LONG).unwrap().device.as_ref(), Some(&uuids[2]));
}

#[test]
fn memory_without_a_process_is_reported() {
    let bench = Bench::new("1xA100-40GB");
    let process = Sleeper::new();
    bench.emulated.attach(training(process.pid(), 0, 3 << 30));
    let read = || Monitor::default().sample(&bench.driver, &bench.uuids()).0.remove(0).reading.unwrap();
    assert_eq!(read().unaccounted(), Some(MiB::ZERO));
    bench.inject(&Fault::Leak { gpu: 0, bytes: 4 << 30 });
    let reading = read();
    assert_eq!((reading.memory_used, reading.unaccounted()), (MiB(7 * 1024), Some(MiB(4 * 1024))));
}

#[test]
fn a_version_mismatch_differs_from_a_missing_driver() {
    let bench = Bench::new("1xA100-40GB");
    let open = || Driver::open(Some(&bench.emulated.machine.library()), SHORT);
    bench.fault(None, Some("nvmlInit_v2"), fails("LIB_RM_VERSION_MISMATCH"));
    assert!(matches!(open(), Err(DriverError::Mismatch)));
    bench.fault(None, Some("nvmlInit_v2"), fails("DRIVER_NOT_LOADED"));
    assert!(matches!(open(), Err(DriverError::NoDriver(_))));
}

#[test]
fn removing_the_machine_is_an_error_not_a_crash() {
    let bench = Bench::new("1xA100-40GB");
    let folder = bench.emulated.machine.folder().to_owned();
    let uuids = bench.uuids();
    Machine::remove(&folder).unwrap();
    let read = || Monitor::default().sample(&bench.driver, &uuids).0.remove(0).reading;
    assert!(read().is_err());
    // Put up again in the same place, it is seen by those who had it open.
    Machine::create(&folder, &"1xA100-40GB".parse().unwrap(), 1.0, None).unwrap();
    assert!(read().is_ok());
}

fn fails(code: &str) -> CallAnswer {
    CallAnswer::Fails(code.parse().unwrap())
}
