//! A simulated device: its processes, their speeds, its power.

use std::ops::Range;

use carma_core::{CollocationMode, DeviceId, Fraction, MiB, Time};

use super::facts::RankFacts;
use super::meter::Meter;
use super::telemetry::{Levels, Monitor};
use crate::hardware::{GpuType, capped_speed, device_power};
use crate::interference::{InterferenceModel, Neighbours};

/// Identity of a process on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessRef {
    /// A rank of one of our processes.
    Rank { process: usize, rank: usize },
    /// A foreign process, by the index of its disturbance.
    Foreign(usize),
}

/// A process on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceProcess {
    pub(super) process_ref: ProcessRef,
    pub(super) facts: RankFacts,
    pub(super) memory: MiB,
    /// Holds memory but runs little: it causes and suffers no interference.
    pub(super) quiet: bool,
    /// Factor on its step time due to the other processes.
    pub(super) slowdown: f64,
    /// Its activity relative to running alone.
    pub(super) activity: f64,
}

/// A device.
#[derive(Debug)]
pub(super) struct Gpu {
    pub(super) id: DeviceId,
    pub(super) kind: &'static GpuType,
    /// Index of its kind in the table of facts.
    pub(super) kind_place: usize,
    pub(super) mode: CollocationMode,
    /// Memory available to processes.
    pub(super) usable: MiB,
    pub(super) used: MiB,
    /// This device's share of the GPU's idle power.
    pub(super) share: f64,
    /// Factor on step times due to load on its host.
    pub(super) host: f64,
    /// Power limit, if set.
    pub(super) cap: Option<f64>,
    /// Factor on step times due to the power limit.
    pub(super) throttling: f64,
    /// Its share of the GPU's SMs.
    pub(super) slices: Fraction,
    /// The GPU it is an instance of, if that was partitioned during the run.
    pub(super) whole: Option<usize>,
    /// Its instances, if it was partitioned during the run.
    pub(super) instances: Option<Range<usize>>,
    /// It was an instance, and its GPU has been partitioned again.
    pub(super) removed: bool,
    /// Number of reasons why it is lost.
    pub(super) losses: u32,
    pub(super) residents: Vec<DeviceProcess>,
    pub(super) monitor: Monitor,
    pub(super) meter: Meter,
    /// Whether it changed since the last sample.
    pub(super) dirty: bool,
    /// Whether its processes or their memory changed.
    pub(super) processes_changed: bool,
    /// When the last change leaves the window.
    pub(super) settles_at: Option<Time>,
}

impl Gpu {
    pub(super) fn free(&self) -> MiB {
        self.usable - self.used
    }

    pub(super) fn take(&mut self, place: usize, memory: MiB) {
        self.residents[place].memory += memory;
        self.used += memory;
    }

    pub(super) fn place_of(&self, process_ref: ProcessRef) -> Option<usize> {
        self.residents.iter().position(|resident| resident.process_ref == process_ref)
    }

    pub(super) fn remove(&mut self, process_ref: ProcessRef) {
        if let Some(place) = self.place_of(process_ref) {
            let gone = self.residents.remove(place);
            self.used = self.used - gone.memory;
        }
    }

    /// Recomputes all slowdowns. `deviation` is how far a pair lies from the model.
    pub(super) fn contend(&mut self, model: &InterferenceModel, deviation: impl Fn(ProcessRef, ProcessRef) -> f64) {
        for place in 0..self.residents.len() {
            let me = self.residents[place];
            let mut neighbours = Neighbours::default();
            for other in self.residents.iter().filter(|other| other.process_ref != me.process_ref && !other.quiet) {
                neighbours.add(other.facts.interference.pressure * deviation(me.process_ref, other.process_ref));
            }
            let slowdown = if me.quiet { 1.0 } else { model.slowdown(me.facts.interference.sensitivity, neighbours, self.mode) };
            self.residents[place].slowdown = slowdown;
            if let ProcessRef::Foreign(_) = me.process_ref {
                self.residents[place].activity = 1.0 / slowdown;
            }
        }
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.losses > 0
    }

    /// Number of busy processes on it.
    pub(super) fn busy(&self) -> usize {
        self.residents.iter().filter(|resident| !resident.quiet).count()
    }

    pub(super) fn resident(&self, process_ref: ProcessRef) -> Option<&DeviceProcess> {
        self.place_of(process_ref).map(|place| &self.residents[place])
    }

    pub(super) fn rank(&self, process: usize, rank: usize) -> Option<&DeviceProcess> {
        self.resident(ProcessRef::Rank { process, rank })
    }

    pub(super) fn rank_mut(&mut self, process: usize, rank: usize) -> Option<&mut DeviceProcess> {
        self.place_of(ProcessRef::Rank { process, rank }).map(|place| &mut self.residents[place])
    }

    /// Its current counters.
    pub(super) fn levels(&self, reading: f64) -> Levels {
        Levels::of(self.residents.iter().map(|resident| (&resident.facts.profile, resident.activity)), reading)
    }

    /// Its current power.
    pub(super) fn watts(&self) -> f64 {
        if self.is_lost() {
            return 0.0;
        }
        let all = device_power(self.kind, self.residents.iter().map(|resident| (resident.facts.watts, resident.activity)));
        let all = self.cap.map_or(all, |cap| all.min(cap.max(self.kind.idle_watts)));
        // Instances of one GPU share its idle power.
        all - self.kind.idle_watts + self.kind.idle_watts * self.share
    }

    /// Recomputes the slowdown due to the power limit, from the power without a limit. `quiet` is the activity of processes that hold
    /// memory but run little.
    pub(super) fn throttle(&mut self, quiet: f64) {
        let draw = |resident: &DeviceProcess| (resident.facts.watts, if resident.quiet { quiet } else { 1.0 / resident.slowdown });
        let slower = |cap| 1.0 / capped_speed(self.kind, device_power(self.kind, self.residents.iter().map(draw)), cap);
        self.throttling = self.cap.map_or(1.0, slower);
    }
}
