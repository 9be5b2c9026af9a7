//! Shares out what GPUs did among those who were on them, look by look. Its state can be saved, and goes on after a restart.

use std::collections::BTreeMap;

use carma_core::{AttemptId, DeviceId, MiB, Seconds, Time, Watts};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::look::{Holder, Look, Presence};
use super::measurement::Measurement;
use super::share::shares;
use super::usage::Usage;

/// Counters say nothing of what was longer ago than this: after a pause they count for so long only.
const LONGEST_SPAN: Seconds = Seconds::from_secs(60);

/// What attempts that run have taken of their GPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meter {
    devices: BTreeMap<DeviceId, DeviceMeter>,
}

/// Where a GPU's energy went that no attempt had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceEnergy {
    /// All of it, since it was first looked at.
    pub all: Millijoules,
    /// To those who are not ours.
    pub others: Millijoules,
    /// To nobody: it was idle.
    pub nobody: Millijoules,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DeviceMeter {
    at: Time,
    counter: Option<Millijoules>,
    /// The lowest power that was ever seen, which it takes to be there at all.
    idle: Option<Watts>,
    energy: DeviceEnergy,
    usages: Vec<(AttemptId, Usage)>,
}

impl Meter {
    /// Takes a look. What happened since the look before is shared among those who are there now.
    pub fn look(&mut self, device: DeviceId, look: &Look) {
        let first = || DeviceMeter { at: look.at, counter: None, idle: None, energy: DeviceEnergy::default(), usages: Vec::new() };
        self.devices.entry(device).or_insert_with(first).look(look);
    }

    /// Where a GPU's energy went.
    pub fn energy(&self, device: DeviceId) -> Option<DeviceEnergy> {
        self.devices.get(&device).map(|meter| meter.energy)
    }

    /// What an attempt has taken of a GPU so far.
    pub fn usage(&self, attempt: AttemptId, device: DeviceId) -> Option<&Usage> {
        self.devices.get(&device)?.usages.iter().find(|(known, _)| *known == attempt).map(|(_, usage)| usage)
    }

    /// What an attempt has taken so far.
    pub fn so_far(&self, attempt: AttemptId) -> Measurement {
        let of_device = |device: &DeviceId| self.usage(attempt, *device).map(|usage| (*device, usage.clone()));
        Measurement { gpus: self.devices.keys().filter_map(of_device).collect() }
    }

    /// Forgets attempts that nobody waits for any more.
    pub fn retain(&mut self, mut wanted: impl FnMut(AttemptId) -> bool) {
        for meter in self.devices.values_mut() {
            meter.usages.retain(|(attempt, _)| wanted(*attempt));
        }
    }

    /// The attempt has ended: what it took, which is forgotten here.
    pub fn finish(&mut self, attempt: AttemptId) -> Measurement {
        let measurement = self.so_far(attempt);
        for meter in self.devices.values_mut() {
            meter.usages.retain(|(known, _)| *known != attempt);
        }
        measurement
    }
}

impl DeviceMeter {
    fn look(&mut self, look: &Look) {
        let span = look.at - self.at;
        let energy = self.energy_since(look, span);
        self.at = look.at;
        self.counter = look.energy;
        if let Some(power) = look.power.filter(|power| power.0.is_finite()) {
            self.idle = Some(Watts(self.idle.map_or(power.0, |idle| idle.0.min(power.0))));
        }
        self.energy.all += energy;
        self.usages.iter_mut().for_each(|(_, usage)| usage.smact_now = None);
        if look.present.is_empty() {
            self.energy.nobody += energy;
            return;
        }
        let (basis, weights) = shares(&look.present);
        let all: f64 = weights.iter().sum();
        let resting = self.idle.map_or(Millijoules::default(), |idle| Millijoules::of(idle, span)).min(energy);
        // To be there costs everybody the same; what is above goes by activity.
        let by_presence = resting.split(&vec![1.0; weights.len()]);
        let by_activity = (energy - resting).split(&weights);
        for (place, presence) in look.present.iter().enumerate() {
            let part = by_presence[place] + by_activity[place];
            let Holder::Attempt(attempt) = presence.holder else {
                self.energy.others += part;
                continue;
            };
            let usage = self.usage(attempt);
            usage.energy += part;
            usage.watched = usage.watched + span;
            usage.basis = usage.basis.max(basis);
            usage.peak_memory = usage.peak_memory.max(memory(presence, look));
            usage.add(&look.activity, weights[place] / all, span.min(LONGEST_SPAN));
        }
    }

    /// Energy since the look before: by the counter, or by the power where there is none, or where it began anew with the driver.
    fn energy_since(&self, look: &Look, span: Seconds) -> Millijoules {
        match (self.counter, look.energy, look.power) {
            (Some(before), Some(now), _) if now >= before => now - before,
            (.., Some(power)) => Millijoules::of(power, span),
            _ => Millijoules::default(),
        }
    }

    fn usage(&mut self, attempt: AttemptId) -> &mut Usage {
        let place = self.usages.iter().position(|(known, _)| *known == attempt).unwrap_or_else(|| {
            self.usages.push((attempt, Usage::default()));
            self.usages.len() - 1
        });
        &mut self.usages[place].1
    }
}

/// The memory somebody holds; of one who is alone, all that is in use, where the driver does not tell.
fn memory(presence: &Presence, look: &Look) -> MiB {
    let alone = || (look.present.len() == 1).then_some(look.memory_used);
    presence.memory.or_else(alone).unwrap_or_default()
}
