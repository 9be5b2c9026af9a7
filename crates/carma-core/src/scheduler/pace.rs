//! How fast attempts make progress, by their reports, and what that shows about their interference.

use super::Scheduler;
use super::action::Action;
use crate::job::{Interference, Placement};
use crate::units::{Fraction, Seconds, Time};
use crate::{AttemptId, DeviceId, JobId};

/// The shortest time over which progress is measured, in seconds.
const MIN_MEASUREMENT: f64 = 60.0;
/// After this time since it was first seen, a new attempt is taken to train.
const WARM_UP: Seconds = Seconds::from_secs(120);
/// By how much an expected duration may be off, as a factor.
const DURATION_ERROR: f64 = 1.5;

/// How fast an attempt makes progress.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pace {
    /// Its first report since the tenants last changed.
    first: Option<(Time, f64)>,
    /// Its speed alone, from its speed beside the others and the predicted slowdown.
    now: Option<Rate>,
    /// The same from before the tenants changed.
    before: Option<Rate>,
}

/// A share of the whole work a second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    alone: f64,
    /// It was alone, and nothing had to be predicted.
    measured: bool,
}

impl Pace {
    /// Its progress per second when alone, if it was seen alone.
    fn measured(&self) -> Option<f64> {
        self.before.filter(|rate| rate.measured).map(|rate| rate.alone)
    }

    /// The tenants changed: its speed is measured again.
    fn restart(&mut self) {
        let better = |rate: &Rate| rate.measured || self.before.is_none();
        self.before = self.now.filter(better).or(self.before);
        (self.first, self.now) = (None, None);
    }

    /// Takes in a progress report. Returns its progress per second, once that is known.
    fn report(&mut self, done: f64, predicted: f64, now: Time) -> Option<f64> {
        let (since, from) = *self.first.get_or_insert((now, done));
        let rate = (done - from) / (now - since).get();
        if (now - since).get() < MIN_MEASUREMENT || rate <= 0.0 {
            return None;
        }
        self.now = Some(Rate { alone: rate * predicted, measured: predicted <= 1.0 });
        Some(rate)
    }
}

/// An attempt on the device on which others are predicted to slow it down most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WorstDevice {
    pub(super) attempt: AttemptId,
    pub(super) device: DeviceId,
    /// How much slower it should be there than alone.
    pub(super) predicted: f64,
}

impl Scheduler {
    /// The tenants of the placement's devices have changed.
    pub(super) fn tenants_changed(&mut self, placement: &Placement, now: Time) {
        self.predict_speeds(placement, now);
        if self.paces.is_empty() {
            return;
        }
        let devices = placement.devices.iter().filter_map(|granted| self.fleet.device(granted.device));
        for tenant in devices.flat_map(|device| &device.tenants) {
            self.paces.entry(tenant.attempt).and_modify(Pace::restart);
        }
    }

    /// Takes in an attempt's progress report.
    pub(super) fn watch_pace(&mut self, attempt: AttemptId, done: Fraction, now: Time, actions: &mut Vec<Action>) {
        let learns = self.config.forecast.learn && self.config.mapping.policy.predicts();
        if !learns && self.config.correction.slowdown.is_none() {
            return;
        }
        let Some(beside) = self.beside(attempt, now) else { return };
        let pace = self.paces.entry(attempt).or_default();
        let Some(rate) = pace.report(done.get(), beside.predicted, now) else { return };
        let (measured, before) = (pace.measured(), pace.before);
        let guess = || Some(1.0 / (self.jobs.get(&attempt.job)?.spec.expected_duration?.get() * DURATION_ERROR));
        let alone = before.map(|rate| rate.alone).or_else(guess);
        if let Some(alone) = measured.filter(|_| learns) {
            self.learn(&beside, alone / rate, now);
        }
        if let Some(alone) = alone {
            self.correct_slowdown(&beside, alone / rate, now, actions);
        }
    }

    /// The device where an attempt is predicted to be slowed down most; unset while a tenant there has just started.
    fn beside(&self, attempt: AttemptId, now: Time) -> Option<WorstDevice> {
        let placement = &self.jobs.get(&attempt.job)?.state.active()?.placement;
        let devices = || placement.devices.iter().filter_map(|granted| self.fleet.device(granted.device));
        let trains = |seen: Option<Time>| seen.is_some_and(|seen| now - seen >= WARM_UP);
        if !devices().flat_map(|device| &device.tenants).all(|tenant| tenant.attempt == attempt || trains(tenant.seen_at)) {
            return None;
        }
        let beside = devices().map(|device| WorstDevice { attempt, device: device.id(), predicted: device.predicted_slowdown(attempt) });
        beside.max_by(|a, b| a.predicted.total_cmp(&b.predicted))
    }

    /// Corrects what is expected of an attempt and of those beside it, so that it explains what was seen.
    fn learn(&mut self, beside: &WorstDevice, slowdown: f64, now: Time) {
        let factor = Interference::misjudged(slowdown, beside.predicted);
        let tenants = self.fleet.device(beside.device).into_iter().flat_map(|device| &device.tenants);
        let attempts: Vec<AttemptId> = tenants.map(|tenant| tenant.attempt).collect();
        if attempts.len() < 2 {
            return;
        }
        for attempt in attempts {
            let itself = attempt == beside.attempt;
            self.correct_interference(attempt.job, now, |seen| {
                Interference::correct(if itself { &mut seen.sensitivity } else { &mut seen.pressure }, factor);
            });
        }
    }

    fn correct_interference(&mut self, job: JobId, now: Time, correct: impl FnOnce(&mut Interference)) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        let before = job.spec.interference;
        correct(&mut job.spec.interference);
        let by = job.spec.interference.over(before);
        let Some(active) = job.state.active() else { return };
        for granted in &active.placement.devices {
            self.fleet.update(granted.device, &self.config, now, |device| {
                if let Some(tenant) = device.tenant_mut(active.attempt) {
                    tenant.profile = tenant.profile.times(by);
                }
            });
        }
    }
}
