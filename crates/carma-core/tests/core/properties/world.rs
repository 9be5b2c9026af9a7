//! Feeds random steps to a scheduler and checks every answer against its own records.

use std::collections::BTreeMap;

use carma_core::*;
use proptest::sample::Index;

use super::checks::Closed;
use super::events::{Mode, Setup};
use super::shares::HostReading;
use super::trims::SeenMemory;

pub(super) struct World {
    pub(super) log: EventLog<Vec<u8>>,
    pub(super) now: Time,
    pub(super) jobs: u64,
    /// Servers that came later, also those that are gone.
    pub(super) servers_attached: u32,
    pub(super) gates: BTreeMap<DeviceId, Closed>,
    pub(super) host_readings: BTreeMap<ServerId, HostReading>,
    /// Memory of attempts on devices.
    pub(super) memory: BTreeMap<(AttemptId, DeviceId), SeenMemory>,
    /// GPUs that are to be switched.
    pub(super) switches: Vec<(DeviceId, GpuMode)>,
}

impl World {
    pub(super) fn new(setup: &Setup) -> Self {
        let log = EventLog::new(&setup.settings, Vec::new()).unwrap();
        let mut world = Self {
            log,
            now: Time::from_secs(1),
            jobs: 0,
            servers_attached: 0,
            gates: BTreeMap::new(),
            host_readings: BTreeMap::new(),
            memory: BTreeMap::new(),
            switches: Vec::new(),
        };
        for (server, gpus) in (0..).zip(&setup.servers) {
            let cpu_jobs = (server == 0).then_some(2);
            // The host of the second server is not counted.
            let counted = server != 1;
            let (cores, host_memory) = (counted.then_some(8 + 2 * server), counted.then_some(MiB(65_536)));
            world.accepted(Event::ServerAttached(ServerSpec { cpu_jobs, cores, host_memory, ..ServerSpec::new(ServerId(server)) }));
            for (ordinal, (memory, mode)) in (0..).zip(gpus) {
                let limits_memory = ordinal % 2 == 0;
                let whole = DeviceSpec { limits_memory, ..DeviceSpec::new(DeviceId::gpu(ServerId(server), ordinal), MiB(memory * 1024)) };
                let mps = CollocationMode::Mps { exclusive_process: ordinal % 2 == 0 };
                let halves = [0, 1].map(|half| DeviceSpec::new(whole.id.instance(half), MiB(memory * 512)));
                match mode {
                    Mode::Streams => world.accepted(Event::GpuAttached(whole)),
                    Mode::Mps => world.accepted(Event::GpuAttached(DeviceSpec { mode: mps, ..whole })),
                    Mode::Mig => {
                        world.accepted(Event::GpuAttached(whole));
                        for half in halves {
                            world.accepted(Event::GpuAttached(half));
                        }
                    }
                }
            }
        }
        world.calm();
        world
    }

    pub(super) fn scheduler(&self) -> &Scheduler {
        self.log.scheduler()
    }

    pub(super) fn log(self) -> Vec<u8> {
        self.log.into_output()
    }

    pub(super) fn devices(&self) -> Vec<DeviceId> {
        self.scheduler().fleet().devices().map(Device::id).collect()
    }

    pub(super) fn device(&self, index: Index) -> DeviceId {
        *index.get(&self.devices())
    }

    pub(super) fn job(&self, index: Index) -> JobId {
        JobId(1 + index.index(self.jobs.max(1) as usize) as u64)
    }

    pub(super) fn active(&self) -> Vec<Active> {
        self.scheduler().jobs().filter_map(|job| job.state.active().cloned()).collect()
    }

    pub(super) fn accepted(&mut self, event: Event) {
        let name = format!("{event:?}");
        assert!(self.event(event), "{name} was refused");
    }

    /// Hands in an event; checks the answer, or that a refusal changed nothing.
    pub(super) fn event(&mut self, event: Event) -> bool {
        let before = self.scheduler().clone();
        let answer = self.log.handle(event, self.now);
        if let Ok(actions) = &answer {
            self.check(&before, actions);
        } else {
            assert!(*self.scheduler() == before, "a refused event changed something");
        }
        answer.is_ok()
    }
}
