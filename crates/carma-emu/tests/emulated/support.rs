//! Machines and processes to test with.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use carma_emu::Machine;
use carma_emu::state::{ContextKind, ContextRecord, State, started};
use nvml_wrapper::Nvml;
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

/// A machine that goes when this does.
pub(crate) struct Emulated {
    pub(crate) machine: Machine,
    _folder: TempDir,
}

impl Emulated {
    pub(crate) fn new(gpus: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::create(folder.path(), &gpus.parse().unwrap(), 10.0, None).unwrap();
        Self { machine, _folder: folder }
    }

    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State<'_>) -> R) -> R {
        self.machine.with(act).unwrap()
    }

    /// The stand-in library, as any program opens the driver's.
    pub(crate) fn nvml(&self) -> Nvml {
        Nvml::builder().lib_path(self.machine.library().as_os_str()).init().unwrap()
    }

    pub(crate) fn attach(&self, context: ContextRecord) {
        let born = started(context.pid).unwrap();
        self.with(|state| state.attach(context, born).unwrap());
    }

    /// Cuts a GPU into instances, each the first of its profiles that has this name.
    pub(crate) fn partition(&self, gpu: usize, names: &[&str]) {
        self.with(|state| {
            let profiles = &state.profile(gpu).mig;
            for (place, name) in names.iter().enumerate() {
                let profile = profiles.iter().position(|profile| profile.name == *name).unwrap();
                let instance = &mut state.gpus[gpu].instances[place];
                (instance.used, instance.computes, instance.profile, instance.id) = (1, 1, profile as u32, 7 + place as u32);
                instance.uuid = carma_emu::state::Text::new(&format!("MIG-00000000-0000-8000-8000-{gpu:06}{place:06}"));
            }
            state.gpus[gpu].mig = 1;
            state.touch();
        });
    }
}

/// A process that trains: it holds memory and keeps the GPU busy.
pub(crate) fn training(pid: u32, gpu: usize, bytes: u64) -> ContextRecord {
    ContextRecord {
        pid,
        gpu: gpu as u32,
        bytes,
        busy: 1,
        counters: [0.6, 0.3, 0.4, 0.8],
        watts: 120.0,
        pressure: 0.6,
        sensitivity: 0.5,
        ..ContextRecord::new(ContextKind::Compute)
    }
}

/// A real process that does nothing until it is dropped.
pub(crate) struct Sleeper(Child);

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Generous, for a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits for what takes a moment: processes that ended are noticed within milliseconds.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONG;
    loop {
        match look() {
            Some(found) => return found,
            None if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
            None => panic!("it did not happen"),
        }
    }
}
