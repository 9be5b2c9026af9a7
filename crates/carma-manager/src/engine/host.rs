//! The host as the engine sees it: its last reading, and whether it is short of something.

use carma_core::{Event, EventError, ServerSpec, Topology};

use super::decide::Decisions;
use crate::host::{HostChange, HostReading, HostWatch, Limits, Shortage, ShortageTracker};
use crate::host_gpus::LOCAL_SERVER;

/// Even a small host runs this many jobs without GPUs at once: some of them only wait.
const MIN_CPU_JOBS: u32 = 4;

/// The state of the host.
#[derive(Debug)]
pub(crate) struct Host {
    limits: Limits,
    /// Jobs without GPUs at once; unset: as many as there are cores.
    cpu_jobs: Option<u32>,
    tracker: ShortageTracker,
    reading: Option<HostReading>,
}

impl Host {
    pub(crate) fn new(limits: Limits, cpu_jobs: Option<u32>) -> Self {
        Self { limits, cpu_jobs, tracker: ShortageTracker::default(), reading: None }
    }

    pub(crate) fn reading(&self) -> Option<&HostReading> {
        self.reading.as_ref()
    }

    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.tracker.shortage()
    }

    /// Attaches this host to a new core.
    pub(crate) fn attach(&mut self, decisions: &mut Decisions, topology: Option<Topology>) -> Result<(), EventError> {
        // A new core needs the shortage again.
        self.tracker = ShortageTracker::default();
        let host = HostWatch::new(Vec::new()).read().ok();
        let cpu_jobs = self.cpu_jobs.or_else(|| host.as_ref().map(|host| host.cores.max(MIN_CPU_JOBS)));
        let spec = ServerSpec {
            cpu_jobs: cpu_jobs.filter(|limit| *limit > 0),
            cores: host.as_ref().map(|host| host.cores),
            host_memory: host.as_ref().map(|host| host.memory_total),
            topology,
            ..ServerSpec::new(LOCAL_SERVER)
        };
        decisions.prepare(Event::ServerAttached(spec))
    }

    /// Takes a reading. `launches`: the manager launches jobs, so a shortage matters.
    pub(crate) fn take(&mut self, decisions: &mut Decisions, reading: HostReading, launches: bool) {
        let change = self.tracker.take(&reading, &self.limits);
        let _ = decisions.tell(Event::HostMemory { server: LOCAL_SERVER, available: reading.memory_available });
        self.reading = Some(reading);
        match change.filter(|_| launches) {
            None => {}
            Some(HostChange::Short(shortage)) => {
                decisions.warn(format!("no new attempts start on this host: {shortage}"));
                let _ = decisions.tell(Event::HostShort { server: LOCAL_SERVER });
            }
            Some(HostChange::Recovered) => {
                decisions.announce("the host has enough resources again".to_owned());
                let _ = decisions.tell(Event::HostRecovered { server: LOCAL_SERVER });
            }
        }
    }
}
