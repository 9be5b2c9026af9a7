//! The values of a GPU in `nvidia-smi`.

use std::fmt::Write as _;
use std::fs;

use crate::driver_version::DriverVersion;
use crate::machine::PROGRAMS;
use crate::profile::Facts;
use crate::readings::Readings;
use crate::state::{ContextKind, Memory, Place, State};

/// A GPU now.
#[derive(Debug)]
pub(super) struct Gpu {
    pub(super) driver: DriverVersion,
    pub(super) index: usize,
    pub(super) uuid: String,
    pub(super) bus_id: String,
    pub(super) facts: &'static Facts,
    pub(super) memory: Memory,
    pub(super) readings: Readings,
    /// In milliwatts: the present and the highest limit.
    pub(super) power_limit: u32,
    pub(super) highest_limit: u32,
    /// NVML's number of the compute mode.
    pub(super) compute_mode: u32,
    /// Whether MIG is on, if supported.
    pub(super) mig: Option<bool>,
    pub(super) persistence: bool,
    pub(super) display: bool,
    pub(super) uncorrected: u64,
    pub(super) lost: bool,
    pub(super) instances: Vec<Instance>,
    pub(super) apps: Vec<App>,
}

/// A MIG instance that processes can use.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) profile: String,
    pub(super) uuid: String,
}

/// A process on it.
#[derive(Debug)]
pub(super) struct App {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) kind: ContextKind,
    pub(super) bytes: u64,
    /// The number of the GPU instance it is on.
    pub(super) instance: Option<u32>,
}

impl Gpu {
    pub(super) fn new(state: &State<'_>, place: usize) -> Self {
        let (record, profile) = (&state.gpus[place], state.profile(place));
        let there = record.instances.iter().enumerate().filter(|(_, instance)| instance.computes != 0);
        let instance = |(number, instance): (usize, &crate::state::InstanceRecord)| Instance {
            profile: state.instance_profile(place, number).name.clone(),
            uuid: instance.uuid.get().to_owned(),
        };
        let app = |context: &crate::state::ContextRecord| App {
            pid: context.pid,
            name: program(context.pid),
            kind: context.kind(),
            bytes: context.bytes,
            instance: record.instances.get(context.instance as usize).map(|instance| instance.id),
        };
        let mut apps: Vec<App> = state.contexts_at(Place::gpu(place)).map(app).collect();
        apps.sort_by_key(|app| app.pid);
        Self {
            driver: DriverVersion::from_number(state.header.driver),
            index: place,
            uuid: record.uuid.get().to_owned(),
            bus_id: record.bus_id(),
            facts: &profile.facts,
            memory: state.memory(Place::gpu(place)),
            readings: state.readings(place),
            power_limit: record.power_limit,
            highest_limit: (profile.kind.limit_watts * 1000.0) as u32,
            compute_mode: record.compute_mode,
            mig: (!profile.mig.is_empty()).then_some(record.mig != 0),
            persistence: record.persistence != 0,
            display: record.display != 0,
            uncorrected: record.ecc_uncorrected,
            lost: record.lost != 0,
            instances: there.map(instance).collect(),
            apps,
        }
    }

    /// Whether this is one of its names.
    pub(super) fn is_called(&self, name: &str) -> bool {
        name.parse() == Ok(self.index) || name == self.uuid || name.eq_ignore_ascii_case(&self.bus_id)
    }

    /// Its lines under `-L`.
    pub(super) fn listed(&self) -> String {
        let mut text = format!("GPU {}: {} (UUID: {})\n", self.index, self.facts.product, self.uuid);
        for (number, instance) in self.instances.iter().enumerate() {
            let _ = writeln!(text, "  MIG {:<10}  Device {number:>2}: (UUID: {})", instance.profile, instance.uuid);
        }
        text
    }

    /// The compute mode as text.
    pub(super) const fn mode(&self) -> &'static str {
        match self.compute_mode {
            1 => "Exclusive_Thread",
            2 => "Prohibited",
            3 => "Exclusive_Process",
            _ => "Default",
        }
    }
}

/// The name of a process's program. Emulated programs are shown by their own names.
fn program(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let called = String::from_utf8_lossy(line.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    match called.rsplit('/').next() {
        None | Some("") => "[Not Found]".to_owned(),
        Some(name) if PROGRAMS.contains(&name) => name.to_owned(),
        Some(_) => called,
    }
}
