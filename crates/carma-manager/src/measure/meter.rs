//! Divides the activity and energy of GPUs among the attempts on them, sample by sample. Its state can be saved, and continues after a restart.

use std::collections::BTreeMap;

use carma_core::{AttemptId, DeviceId, MiB, Seconds, Time, Watts};
use serde::{Deserialize, Serialize};

use super::energy::Millijoules;
use super::gap::{Gap, Part};
use super::measurement::Measurement;
use super::share::shares;
use super::usage::Usage;
use super::usage_sample::{GpuConsumer, Holder, UsageSample};

/// Counters describe at most this much time before a sample: after a longer pause they count for this long only.
const MAX_SPAN: Seconds = Seconds::from_secs(60);

/// The usage of running attempts on their GPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meter {
    devices: BTreeMap<DeviceId, DeviceMeter>,
}

/// A GPU's energy, and the part of it that no attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceEnergy {
    /// All of it, since the first sample.
    pub all: Millijoules,
    /// To processes that are not ours.
    pub others: Millijoules,
    /// To no process: it was idle.
    pub nobody: Millijoules,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DeviceMeter {
    at: Time,
    counter: Option<Millijoules>,
    /// The lowest power read so far: the cost of an idle GPU.
    idle: Option<Watts>,
    energy: DeviceEnergy,
    usages: Vec<(AttemptId, Usage)>,
    /// Who was on it in the last sample, with their parts of its activity.
    #[serde(default)]
    present: Vec<(Holder, f64)>,
}

impl Meter {
    /// Adds a sample. The usage since the last one is divided among the present processes.
    pub fn add(&mut self, device: DeviceId, sample: &UsageSample) {
        let first = || DeviceMeter {
            at: sample.at,
            counter: None,
            idle: None,
            energy: DeviceEnergy::default(),
            usages: Vec::new(),
            present: Vec::new(),
        };
        self.devices.entry(device).or_insert_with(first).add(sample);
    }

    /// Divides the energy of a time without samples, by the GPU's counter, among those who were there. Without a counter it is not known.
    pub fn bridge(&mut self, device: DeviceId, now: Time, counter: Option<Millijoules>, gap: &Gap) {
        if let Some(meter) = self.devices.get_mut(&device) {
            meter.bridge(now, counter, gap);
        }
    }

    /// The GPUs with samples.
    pub fn devices(&self) -> impl Iterator<Item = DeviceId> + '_ {
        self.devices.keys().copied()
    }

    /// The split of a GPU's energy.
    pub fn energy(&self, device: DeviceId) -> Option<DeviceEnergy> {
        self.devices.get(&device).map(|meter| meter.energy)
    }

    /// The usage of an attempt on a GPU so far.
    pub fn usage(&self, attempt: AttemptId, device: DeviceId) -> Option<&Usage> {
        self.devices.get(&device)?.usages.iter().find(|(known, _)| *known == attempt).map(|(_, usage)| usage)
    }

    /// The usage of an attempt so far.
    pub fn so_far(&self, attempt: AttemptId) -> Measurement {
        let of_device = |device: &DeviceId| self.usage(attempt, *device).map(|usage| (*device, usage.clone()));
        Measurement { gpus: self.devices.keys().filter_map(of_device).collect() }
    }

    /// Drops attempts that are no longer wanted.
    pub fn retain(&mut self, mut wanted: impl FnMut(AttemptId) -> bool) {
        for meter in self.devices.values_mut() {
            meter.usages.retain(|(attempt, _)| wanted(*attempt));
        }
    }

    /// Ends an attempt: returns its usage, and drops it.
    pub fn finish(&mut self, attempt: AttemptId) -> Measurement {
        let measurement = self.so_far(attempt);
        self.forget(attempt);
        measurement
    }

    /// Drops an attempt.
    pub fn forget(&mut self, attempt: AttemptId) {
        self.retain(|known| known != attempt);
    }
}

impl DeviceMeter {
    fn add(&mut self, sample: &UsageSample) {
        let span = sample.at - self.at;
        let energy = self.energy_since(sample, span);
        self.at = sample.at;
        self.counter = sample.energy;
        if let Some(power) = sample.power.filter(|power| power.0.is_finite()) {
            self.idle = Some(Watts(self.idle.map_or(power.0, |idle| idle.0.min(power.0))));
        }
        self.energy.all += energy;
        self.usages.iter_mut().for_each(|(_, usage)| usage.smact_now = None);
        let (basis, weights) = shares(&sample.occupants);
        self.present = sample.occupants.iter().map(|occupant| occupant.holder).zip(weights.iter().copied()).collect();
        if sample.occupants.is_empty() {
            self.energy.nobody += energy;
            return;
        }
        let all: f64 = weights.iter().sum();
        let resting = self.idle.map_or(Millijoules::default(), |idle| Millijoules::of(idle, span)).min(energy);
        // Idle power is divided equally; the rest by activity.
        let by_presence = resting.split(&vec![1.0; weights.len()]);
        let by_activity = (energy - resting).split(&weights);
        for (place, occupant) in sample.occupants.iter().enumerate() {
            let part = by_presence[place] + by_activity[place];
            let Holder::Attempt(attempt) = occupant.holder else {
                self.energy.others += part;
                continue;
            };
            let usage = self.usage(attempt);
            usage.energy += part;
            usage.watched = usage.watched + span;
            usage.basis = usage.basis.max(basis);
            usage.peak_memory = usage.peak_memory.max(memory(occupant, sample));
            usage.add(sample.at, &sample.utilisation, weights[place] / all, span.min(MAX_SPAN));
        }
    }

    fn bridge(&mut self, now: Time, counter: Option<Millijoules>, gap: &Gap) {
        let energy = self.counter.zip(counter).map_or(Millijoules::default(), |(before, now)| now - before);
        (self.at, self.counter) = (now, counter);
        self.energy.all += energy;
        let parts = gap.parts(&self.present);
        let longest = parts.iter().map(|part| part.span).max().unwrap_or(Seconds::ZERO);
        let resting = self.idle.map_or(Millijoules::default(), |idle| Millijoules::of(idle, gap.span)).min(energy);
        // The last part belongs to no process: the idle power after the last one ended, or everything if no process was there.
        let by_presence = parts.iter().map(|part| part.span.get()).chain([(gap.span - longest).get()]).collect::<Vec<f64>>();
        let by_activity = parts.iter().map(|part| part.weight * part.span.get()).chain([0.0]).collect::<Vec<f64>>();
        let split = |energy: Millijoules, mut weights: Vec<f64>| {
            if weights.iter().sum::<f64>() <= 0.0 {
                weights[parts.len()] = 1.0;
            }
            energy.split(&weights)
        };
        let (by_presence, by_activity) = (split(resting, by_presence), split(energy - resting, by_activity));
        let mut shares = by_presence.into_iter().zip(by_activity).map(|(resting, active)| resting + active);
        for (Part { holder, span, .. }, share) in parts.iter().zip(shares.by_ref()) {
            match holder {
                None => self.energy.nobody += share,
                Some(Holder::Others) => self.energy.others += share,
                Some(Holder::Attempt(attempt)) => {
                    let usage = self.usage(*attempt);
                    usage.energy += share;
                    usage.watched = usage.watched + *span;
                }
            }
        }
        self.energy.nobody += shares.sum::<Millijoules>();
    }

    /// Energy since the last sample: by the counter, or by the power if there is no counter or it was reset.
    fn energy_since(&self, sample: &UsageSample, span: Seconds) -> Millijoules {
        match (self.counter, sample.energy, sample.power) {
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

/// The memory of an occupant; if the driver does not report it and it is alone, all memory in use.
fn memory(occupant: &GpuConsumer, sample: &UsageSample) -> MiB {
    let alone = || (sample.occupants.len() == 1).then_some(sample.memory_used);
    occupant.memory.or_else(alone).unwrap_or_default()
}
