//! The host as the engine sees it: its last reading, and whether it is short of something.

use std::path::PathBuf;
use std::time::Duration;
use std::{io, thread};

use carma_core::{Event, EventError, ServerSpec, Topology};

use super::decide::Decisions;
use super::gpus::devices::SERVER;
use crate::host::{HostChange, HostReading, HostWatch, Limits, Shortage, ShortageTracker};

/// Even a small host runs this many jobs without GPUs at once: some of them only wait.
const MIN_CPU_JOBS: u32 = 4;
/// How often the host is read.
const PERIOD: Duration = Duration::from_secs(1);

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
        // A new core must be told of a shortage again.
        self.tracker = ShortageTracker::default();
        let host = HostWatch::new(Vec::new()).read().ok();
        let cpu_jobs = self.cpu_jobs.or_else(|| host.as_ref().map(|host| host.cores.max(MIN_CPU_JOBS)));
        let spec = ServerSpec {
            cpu_jobs: cpu_jobs.filter(|limit| *limit > 0),
            cores: host.as_ref().map(|host| host.cores),
            host_memory: host.as_ref().map(|host| host.memory_total),
            topology,
            ..ServerSpec::new(SERVER)
        };
        decisions.prepare(Event::ServerAttached(spec))
    }

    /// Takes a reading. `launches`: the manager launches jobs, so a shortage matters.
    pub(crate) fn take(&mut self, decisions: &mut Decisions, reading: HostReading, launches: bool) {
        let change = self.tracker.take(&reading, &self.limits);
        let _ = decisions.tell(Event::HostMemory { server: SERVER, available: reading.memory_available });
        self.reading = Some(reading);
        match change.filter(|_| launches) {
            None => {}
            Some(HostChange::Short(shortage)) => {
                decisions.announce(format!("the host is short, and nothing new is started: {shortage}"));
                let _ = decisions.tell(Event::HostShort { server: SERVER });
            }
            Some(HostChange::Recovered) => {
                decisions.announce("the host is fine again".to_owned());
                let _ = decisions.tell(Event::HostRecovered { server: SERVER });
            }
        }
    }
}

/// Reads the host periodically on its own thread: a disk that hangs must not block the engine. Ends when `take` returns false.
pub(crate) fn watch(folders: Vec<PathBuf>, take: impl Fn(HostReading) -> bool + Send + 'static) -> io::Result<()> {
    let mut watch = HostWatch::new(folders);
    let run = move || {
        // A host that cannot be read is not known to be short.
        while watch.read().map_or(true, &take) {
            thread::sleep(PERIOD);
        }
    };
    thread::Builder::new().name("host".to_owned()).spawn(run).map(drop)
}
