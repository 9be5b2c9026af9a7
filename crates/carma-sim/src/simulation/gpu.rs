//! A simulated device: who is on it, how fast they are, what it draws.

use std::ops::Range;

use carma_core::{CollocationMode, DeviceId, Fraction, MiB, Time};

use super::facts::RankFacts;
use super::meter::Meter;
use super::telemetry::{Levels, Monitor};
use crate::hardware::{GpuType, capped_speed, device_power};
use crate::interference::{InterferenceModel, Neighbours};

/// Who a resident is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// A rank of one of our processes.
    Rank { process: usize, rank: usize },
    /// A process from outside, by its disturbance.
    Foreign(usize),
}

/// A process on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    pub(super) who: Who,
    pub(super) facts: RankFacts,
    pub(super) memory: MiB,
    /// It holds memory and runs little: it neither presses nor suffers.
    pub(super) quiet: bool,
    /// How much longer its steps take beside the others.
    pub(super) slowdown: f64,
    /// How much it does of what it does alone.
    pub(super) activity: f64,
}

/// A device.
#[derive(Debug)]
pub(super) struct Gpu {
    pub(super) id: DeviceId,
    pub(super) kind: &'static GpuType,
    /// The place of its kind in the table of facts.
    pub(super) kind_place: usize,
    pub(super) mode: CollocationMode,
    /// Memory that processes can have.
    pub(super) usable: MiB,
    pub(super) used: MiB,
    /// The part of the GPU's idle power that counts as this device's.
    pub(super) share: f64,
    /// How much longer steps take because of how many run on its server.
    pub(super) host: f64,
    /// The most it may draw, where that was set.
    pub(super) cap: Option<f64>,
    /// How much longer steps take because of that.
    pub(super) throttling: f64,
    /// Its share of the GPU's SMs.
    pub(super) slices: Fraction,
    /// The GPU it is an instance of, where that was cut during the run.
    pub(super) whole: Option<usize>,
    /// The instances it was cut into during the run.
    pub(super) instances: Option<Range<usize>>,
    /// Reasons for it to be lost.
    pub(super) losses: u32,
    pub(super) residents: Vec<Resident>,
    pub(super) monitor: Monitor,
    pub(super) meter: Meter,
    /// Something changed since the monitor last looked.
    pub(super) dirty: bool,
    /// Processes came, or their memory changed.
    pub(super) processes_changed: bool,
    /// When the last change will have left the window.
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

    pub(super) fn place_of(&self, who: Who) -> Option<usize> {
        self.residents.iter().position(|resident| resident.who == who)
    }

    pub(super) fn remove(&mut self, who: Who) {
        if let Some(place) = self.place_of(who) {
            let gone = self.residents.remove(place);
            self.used = self.used - gone.memory;
        }
    }

    /// Works out everybody's slowdown anew. `deviation` says how far a pair lies from the model.
    pub(super) fn contend(&mut self, model: &InterferenceModel, deviation: impl Fn(Who, Who) -> f64) {
        for place in 0..self.residents.len() {
            let me = self.residents[place];
            let mut neighbours = Neighbours::default();
            for other in self.residents.iter().filter(|other| other.who != me.who && !other.quiet) {
                neighbours.add(other.facts.character.pressure * deviation(me.who, other.who));
            }
            let slowdown = if me.quiet { 1.0 } else { model.slowdown(me.facts.character.sensitivity, neighbours, self.mode) };
            self.residents[place].slowdown = slowdown;
            if let Who::Foreign(_) = me.who {
                self.residents[place].activity = 1.0 / slowdown;
            }
        }
    }

    pub(super) const fn is_lost(&self) -> bool {
        self.losses > 0
    }

    /// How many run on it.
    pub(super) fn busy(&self) -> usize {
        self.residents.iter().filter(|resident| !resident.quiet).count()
    }

    pub(super) fn rank(&self, process: usize, rank: usize) -> Option<&Resident> {
        self.place_of(Who::Rank { process, rank }).map(|place| &self.residents[place])
    }

    pub(super) fn rank_mut(&mut self, process: usize, rank: usize) -> Option<&mut Resident> {
        self.place_of(Who::Rank { process, rank }).map(|place| &mut self.residents[place])
    }

    /// What its counters show now.
    pub(super) fn levels(&self, reading: f64) -> Levels {
        Levels::of(self.residents.iter().map(|resident| (&resident.facts.profile, resident.activity)), reading)
    }

    /// What it draws now.
    pub(super) fn watts(&self) -> f64 {
        if self.is_lost() {
            return 0.0;
        }
        let all = device_power(self.kind, self.residents.iter().map(|resident| (resident.facts.watts, resident.activity)));
        let all = self.cap.map_or(all, |cap| all.min(cap.max(self.kind.idle_watts)));
        // Instances of one GPU share its idle power.
        all - self.kind.idle_watts + self.kind.idle_watts * self.share
    }

    /// Works out anew how much the limit of power slows it down, from what those on it would draw without. Who holds memory and does little
    /// is so active.
    pub(super) fn throttle(&mut self, quiet: f64) {
        let draw = |resident: &Resident| (resident.facts.watts, if resident.quiet { quiet } else { 1.0 / resident.slowdown });
        let slower = |cap| 1.0 / capped_speed(self.kind, device_power(self.kind, self.residents.iter().map(draw)), cap);
        self.throttling = self.cap.map_or(1.0, slower);
    }
}
