//! MIG through the stand-in library: what carma-gpu lists and changes is what the state says.

use std::collections::BTreeMap;

use carma_core::{Link, MiB};
use carma_emu::Profile as Kind;
use carma_emu::state::{ContextRecord, EventRecord, NONE, Text};
use carma_gpu::mig::{Layout, MigError, MigState, Mode, PlanError, Step, apply, list, prepare, profiles};
use carma_gpu::{DEADLINE, DeviceUuid, Driver, DriverError, topology};
use proptest::prelude::*;

use crate::support::{Emulated, Sleeper, training, until};

/// A machine with these GPUs, and its driver.
struct Server {
    emulated: Emulated,
    driver: Driver,
}

impl Server {
    fn new(gpus: &str) -> Self {
        let emulated = Emulated::new(gpus);
        let driver = Driver::open(Some(&emulated.machine.library()), DEADLINE * 30).unwrap();
        Self { emulated, driver }
    }

    /// One with a GPU of each kind.
    fn of(kinds: &[&Kind]) -> Self {
        let gpus: Vec<String> = kinds.iter().map(|kind| format!("1x{}", kind.kind.name)).collect();
        Self::new(&gpus.join(","))
    }

    fn gpu(&self, place: usize) -> DeviceUuid {
        self.emulated.with(|state| state.gpus[place].uuid.get().parse().unwrap())
    }

    fn apply(&self, layout: &str) -> Result<MigState, MigError> {
        apply(&self.driver, &self.gpu(0), &layout.parse().unwrap())
    }

    /// A process on the first GPU, on one of its instances if one is named.
    fn busy(&self, uuid: Option<&DeviceUuid>) -> Sleeper {
        let sleeper = Sleeper::new();
        let instance = |uuid: &DeviceUuid| {
            let find = |state: &mut carma_emu::state::State<'_>| {
                state.gpus[0].instances.iter().position(|instance| instance.uuid.get() == uuid.as_str()).unwrap() as u32
            };
            self.emulated.with(find)
        };
        self.emulated.attach(ContextRecord { instance: uuid.map_or(NONE, instance), ..training(sleeper.pid(), 0, 1 << 30) });
        sleeper
    }

    fn fault(&self, call: &str, code: u32) {
        self.emulated.with(|state| {
            let fault = &mut state.faults[0];
            (fault.used, fault.gpu, fault.code, fault.call) = (1, NONE, code, Text::new(call));
        });
    }

    fn mend(&self) {
        self.emulated.with(|state| state.faults[0].used = 0);
    }
}

fn uuids(state: &MigState) -> Vec<DeviceUuid> {
    state.instances.iter().map(|instance| instance.whole().unwrap().uuid.clone()).collect()
}

#[test]
fn every_profile_is_found_by_name() {
    let kinds: Vec<&Kind> = Kind::all().iter().collect();
    let server = Server::of(&kinds);
    for (place, kind) in kinds.into_iter().enumerate() {
        let found = profiles(&server.driver, &server.gpu(place)).unwrap();
        let found: BTreeMap<String, (u32, MiB, Vec<u32>)> = found
            .into_iter()
            .map(|profile| {
                let starts = profile.placements.iter().map(|placement| placement.start).collect();
                (profile.name.to_string(), (profile.id, profile.memory, starts))
            })
            .collect();
        let known = kind.mig.iter().map(|profile| (profile.name.clone(), (profile.id, MiB(profile.memory), profile.starts.clone())));
        assert_eq!(found, known.collect(), "{}", kind.kind.name);
        let mode = list(&server.driver, &server.gpu(place)).unwrap().mode;
        assert_eq!(mode, if kind.mig.is_empty() { Mode::Unsupported } else { Mode::Off });
    }
}

#[test]
fn a_gpu_is_partitioned_repartitioned_and_joined() {
    let server = Server::new("1xA100-40GB");
    let layout = |state: &MigState| state.instances.iter().map(|instance| instance.profile.to_string()).collect::<Vec<_>>();
    assert_eq!(layout(&server.apply("3g.20gb,3g.20gb").unwrap()), ["3g.20gb", "3g.20gb"]);
    let cut = server.apply("3g.20gb,2g.10gb,1g.5gb").unwrap();
    let facts = cut.instances.iter().map(|instance| {
        let carma_gpu::mig::Instance { gpu_instance, profile, memory: MiB(memory), slices, placement, .. } = instance;
        format!("{gpu_instance}: {profile} with {slices} slices and {memory} MiB at {}", placement.unwrap())
    });
    // The first 3g.20gb stays where it was.
    let known = [
        "1: 3g.20gb with 3 slices and 19968 MiB at 0:4",
        "5: 2g.10gb with 2 slices and 9856 MiB at 4:2",
        "13: 1g.5gb with 1 slices and 4864 MiB at 6:1",
    ];
    assert_eq!(facts.collect::<Vec<_>>(), known);
    assert_eq!(list(&server.driver, &server.gpu(0)).unwrap(), cut);
    server.emulated.with(|state| {
        let known = state.instances(0).iter().map(|(_, instance)| instance.uuid.get().parse().unwrap()).collect::<Vec<DeviceUuid>>();
        assert_eq!(uuids(&cut), known);
        let changed = |event: &EventRecord| (event.gpu, event.kind) == (0, 0x100);
        assert!((0..state.header.events).all(|number| changed(&state.event_from(number).unwrap().1)) && state.header.events > 0);
    });
    let whole = server.apply("off").unwrap();
    assert_eq!((whole.mode, whole.instances.len()), (Mode::Off, 0));
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = Server::new("1xH100-80GB");
    let plan = prepare(&server.driver, &server.gpu(0), &"7x1g.10gb".parse().unwrap()).unwrap();
    assert_eq!((plan.steps.len(), plan.steps[0]), (8, Step::Switch(Mode::On)));
    assert_eq!(list(&server.driver, &server.gpu(0)).unwrap().mode, Mode::Off);
}

#[test]
fn instances_in_use_are_kept_and_their_users_reported() {
    let server = Server::new("1xA100-40GB");
    let on_gpu = server.busy(None);
    let refused = server.apply("7x1g.5gb").unwrap_err();
    assert_eq!(refused.to_string(), format!("the GPU is in use by process {} (sleep): wait for its end", on_gpu.pid()));
    drop(on_gpu);
    let before = uuids(&until(|| server.apply("2x1g.5gb").ok()));
    let on_second = server.busy(Some(&before[1]));
    let after = server.apply("3g.20gb,1g.5gb").unwrap();
    assert!(uuids(&after).contains(&before[1]) && !uuids(&after).contains(&before[0]));
    let refused = server.apply("2g.10gb").unwrap_err();
    let MigError::Plan(PlanError::Busy { processes, .. }) = refused else { panic!("{refused}") };
    assert_eq!(processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [on_second.pid()]);
    let refused = server.apply("off").unwrap_err();
    assert!(matches!(refused, MigError::Plan(PlanError::Busy { .. })), "{refused}");
    assert_eq!(list(&server.driver, &server.gpu(0)).unwrap().instances, after.instances);
}

#[test]
fn a_failed_change_is_undone() {
    let server = Server::new("1xA100-40GB");
    let before = server.apply("3g.20gb,3g.20gb").unwrap();
    let places = |state: &MigState| state.instances.iter().map(|instance| (instance.profile, instance.placement)).collect::<Vec<_>>();
    // A GPU instance is made, and then no compute instance can be; nor can what was destroyed be made again.
    server.fault("nvmlGpuInstanceCreateComputeInstance", 999);
    let error = server.apply("4g.20gb,3g.20gb").unwrap_err();
    assert!(matches!(error, MigError::HalfDone { .. }), "{error}");
    server.mend();
    let left = list(&server.driver, &server.gpu(0)).unwrap();
    assert_eq!(places(&left), places(&before)[1..], "none is left half made");
    assert_eq!(places(&server.apply("3g.20gb,3g.20gb").unwrap()), places(&before));
    // Nothing is made, and MIG is switched off again.
    server.apply("off").unwrap();
    server.fault("nvmlDeviceCreateGpuInstanceWithPlacement", 23);
    let error = server.apply("4g.20gb,3g.20gb").unwrap_err();
    assert!(matches!(error, MigError::Driver(DriverError::Call { .. })), "{error}");
    server.mend();
    assert_eq!(list(&server.driver, &server.gpu(0)).unwrap().mode, Mode::Off);
    // All is made, and then it cannot be seen.
    let nothing = Layout::new(Vec::new());
    apply(&server.driver, &server.gpu(0), &nothing).unwrap();
    server.fault("nvmlDeviceGetAttributes_v2", 999);
    server.apply("4g.20gb,3g.20gb").unwrap_err();
    server.mend();
    let left = list(&server.driver, &server.gpu(0)).unwrap();
    assert_eq!((left.mode, places(&left)), (Mode::On, Vec::new()));
}

#[test]
fn an_open_instance_is_kept() {
    let server = Server::new("1xA100-40GB");
    server.apply("3g.20gb").unwrap();
    server.fault("nvmlGpuInstanceDestroy", 19);
    assert!(matches!(server.apply("7x1g.5gb"), Err(MigError::InUse)));
    let state = list(&server.driver, &server.gpu(0)).unwrap();
    assert!(matches!(&state.instances[..], [instance] if instance.whole().is_some()), "{state:?}");
}

#[test]
fn missing_rights_and_profiles_are_reported() {
    let server = Server::new("1xA100-40GB,1xV100-32GB");
    for call in ["nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement"] {
        server.fault(call, 4);
        let error = server.apply("7x1g.5gb").unwrap_err();
        assert!(matches!(error, MigError::NoPermission { call: refused } if refused == call), "{error}");
        server.mend();
    }
    let error = apply(&server.driver, &server.gpu(1), &"7x1g.5gb".parse().unwrap()).unwrap_err();
    assert!(matches!(error, MigError::Plan(PlanError::Unsupported)), "{error}");
    // Other users than root see the devices, but not their placement.
    let all = server.apply("4g.20gb,2g.10gb,1g.5gb").unwrap();
    server.fault("nvmlDeviceGetGpuInstances", 4);
    let mut seen = list(&server.driver, &server.gpu(0)).unwrap();
    assert!(seen.instances.iter().all(|instance| instance.placement.is_none()));
    assert!(matches!(server.apply("7x1g.5gb").unwrap_err(), MigError::Plan(PlanError::Hidden)));
    for (instance, known) in seen.instances.iter_mut().zip(&all.instances) {
        instance.placement = known.placement;
    }
    assert_eq!(seen, all);
}

#[test]
fn gpus_of_a_server_are_as_close_as_their_links() {
    let links_of = |server: &Server, gpus: &[usize]| -> Vec<(u16, u16, Link)> {
        let named: Vec<(u16, DeviceUuid)> = gpus.iter().map(|gpu| (*gpu as u16, server.gpu(*gpu))).collect();
        topology(&server.driver, &named).unwrap().into()
    };
    let server = Server::new("2xA100-40GB,2xRTX-4090-24GB");
    let links = |gpus: &[usize]| links_of(&server, gpus);
    let far = |first, second| (first, second, Link::Node);
    assert_eq!(links(&[0, 1, 2, 3]), [(0, 1, Link::NvLink(12)), far(0, 2), far(0, 3), far(1, 2), far(1, 3), (2, 3, Link::Switches)]);
    // Those that are left keep their numbers.
    assert_eq!(links(&[1, 2, 3]), [far(1, 2), far(1, 3), (2, 3, Link::Switches)]);
    // Links to the GPUs of others lead to no switch.
    assert_eq!(links_of(&Server::new("4xA100-40GB"), &[2, 3]), [(2, 3, Link::NvLink(4))]);
}

/// For any sequence of layouts: each is applied completely or nothing changes, and instances never overlap.
#[test]
fn any_sequence_of_layouts_is_consistent() {
    // One GPU of each kind that can be cut, for all sequences: making machines takes longer than cutting GPUs.
    let kinds: Vec<&Kind> = Kind::all().iter().filter(|kind| !kind.mig.is_empty()).collect();
    let server = Server::of(&kinds);
    let layout = (any::<prop::sample::Index>(), prop::collection::vec(any::<prop::sample::Index>(), 0..5));
    let configuration = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(configuration, |(layouts in prop::collection::vec(layout, 1..6))| {
        for (place, wanted) in layouts {
            let place = place.index(kinds.len());
            let kind = kinds[place];
            let names = wanted.iter().map(|index| index.get(&kind.mig).name.parse().unwrap()).collect();
            let (gpu, layout) = (server.gpu(place), Layout::new(names));
            let before = list(&server.driver, &gpu).unwrap();
            let result = apply(&server.driver, &gpu, &layout);
            let after = list(&server.driver, &gpu).unwrap();
            match result {
                Ok(state) => {
                    prop_assert_eq!(&state, &after);
                    prop_assert_eq!(Layout::new(after.instances.iter().map(|instance| instance.profile).collect()), layout);
                    // Kept instances are unchanged: an instance with the same number, place and profile has the same UUID.
                    let known = |state: &MigState| state.instances.iter().map(|instance| (instance.placement, instance.profile)).collect::<Vec<_>>();
                    let (old, new) = (known(&before), known(&after));
                    for (index, instance) in new.iter().enumerate() {
                        if let Some(was) = old.iter().position(|other| other == instance) {
                            prop_assert_eq!(&before.instances[was], &after.instances[index]);
                        }
                    }
                }
                Err(MigError::Plan(PlanError::TooMany { .. } | PlanError::TooManySlices { .. } | PlanError::NoPlacement(_))) => {
                    prop_assert_eq!(&before, &after);
                }
                Err(error) => prop_assert!(false, "{}", error),
            }
            let slices: u32 = after.instances.iter().map(|instance| instance.slices).sum();
            prop_assert!(slices <= kind.slices());
            let places: Vec<_> = after.instances.iter().map(|instance| instance.placement.unwrap()).collect();
            for (index, placement) in places.iter().enumerate() {
                prop_assert!(!places[..index].iter().any(|other| other.overlaps(*placement)));
            }
            let memory: u64 = after.instances.iter().map(|instance| instance.memory.0).sum();
            prop_assert!(memory <= kind.kind.memory.0);
        }
    });
}
