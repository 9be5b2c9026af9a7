//! Correction at run time: placements that turn out worse than was predicted.
//!
//! When a job is slowed down beyond the forecast, or growing memory will soon fill the device, the device takes no more jobs
//! until its tenants change; and one tenant that can checkpoint is moved.

use super::Scheduler;
use super::action::{Action, Signal};
use super::pace::WorstDevice;
use crate::device::Device;
use crate::job::StopReason;
use crate::obstacle::Obstacle;
use crate::tenant::Tenant;
use crate::units::{Seconds, Time};
use crate::{AttemptId, DeviceId, JobId};

/// Number of memory readings within the horizon.
const READINGS_PER_HORIZON: f64 = 20.0;

impl Scheduler {
    /// Checks whether an attempt is slowed down too much against the prediction.
    pub(super) fn correct_slowdown(&mut self, beside: &WorstDevice, slowdown: f64, now: Time, actions: &mut Vec<Action>) {
        let WorstDevice { attempt, device, predicted } = *beside;
        if self.config.correction.slowdown.is_none_or(|bound| slowdown <= predicted * bound) {
            return;
        }
        let percent = |factor: f64| (100.0 * factor).round() as u32;
        let slowed = Obstacle::Slowed { job: attempt.job, percent: percent(slowdown), predicted: percent(predicted) };
        if self.correct(device, slowed, now) {
            self.part(attempt, device, now, actions);
        }
    }

    /// Closes a device that is shared.
    fn correct(&mut self, device: DeviceId, why: Obstacle, now: Time) -> bool {
        let shared = self.fleet.device(device).is_some_and(|device| device.tenants.len() > 1);
        if shared {
            self.fleet.update(device, &self.config, now, |device| device.corrected = Some(why));
        }
        shared
    }

    /// Moves one of the worst pair: the slowed job, or the job with the highest pressure; the later of the two if both can move.
    fn part(&mut self, slowed: AttemptId, device: DeviceId, now: Time, actions: &mut Vec<Action>) {
        let Some(device) = self.fleet.device(device) else { return };
        let others = device.tenants.iter().filter(|tenant| tenant.attempt != slowed);
        let heaviest = others.max_by(|a, b| a.profile.pressure.total_cmp(&b.profile.pressure));
        let me = device.tenants.iter().find(|tenant| tenant.attempt == slowed);
        let (Some(heaviest), Some(me)) = (heaviest, me) else { return };
        let pair = [(me, heaviest), (heaviest, me)];
        let movable = pair.into_iter().filter(|(one, _)| self.can_go(device, one));
        if let Some((goes, stays)) = movable.max_by_key(|(one, _)| one.launched_at) {
            let (goes, stays) = (goes.attempt, vec![stays.attempt.job]);
            self.move_away(goes, stays, now, actions);
        }
    }

    /// Whether an attempt can be moved off a device that no other attempt is leaving.
    fn can_go(&self, device: &Device, tenant: &Tenant) -> bool {
        let job = |tenant: &Tenant| self.jobs.get(&tenant.attempt.job);
        let leaves = |other: &Tenant| job(other).and_then(|job| job.state.active()).is_some_and(|active| active.stopping.is_some());
        job(tenant).is_some_and(|job| job.spec.may_checkpoint) && !device.tenants.iter().any(leaves)
    }

    fn move_away(&mut self, attempt: AttemptId, from: Vec<JobId>, now: Time, actions: &mut Vec<Action>) {
        let runs = |job: &JobId| self.jobs.get(job).is_some_and(|job| job.state.outcome().is_none());
        let mut apart: Vec<JobId> = self.jobs.get(&attempt.job).map(|job| job.apart_from.clone()).unwrap_or_default();
        apart.extend(from);
        apart.sort_unstable();
        apart.dedup();
        apart.retain(runs);
        self.jobs.entry(attempt.job).and_modify(|job| job.apart_from = apart);
        self.stop(attempt, StopReason::Moved, Signal::Checkpoint, now, actions);
    }

    /// Checks whether growing memory will fill the device.
    pub(super) fn watch_memory(&mut self, device: DeviceId, now: Time, actions: &mut Vec<Action>) {
        let Some(horizon) = self.config.correction.memory_horizon else { return };
        let config = &self.config;
        let apart = Seconds::new(horizon.get() / READINGS_PER_HORIZON).unwrap_or_default();
        let near = self.fleet.update(device, config, now, |device| {
            device.note_memory(now, apart);
            let left = device.time_left(config).filter(|left| *left <= horizon && device.tenants.len() > 1);
            let fastest = device.tenants.iter().max_by(|a, b| a.growth.rate().unwrap_or(0.0).total_cmp(&b.growth.rate().unwrap_or(0.0)));
            let grows = left.zip(fastest).map(|(left, tenant)| Obstacle::MemoryGrows { job: tenant.attempt.job, until: now + left });
            device.corrected = grows.or_else(|| device.corrected.filter(|why| !matches!(why, Obstacle::MemoryGrows { .. })));
            left.filter(|left| left.get() <= horizon.get() / 2.0)
        });
        if near.flatten().is_some() {
            self.relieve(device, horizon, now, actions);
        }
    }

    /// Moves one job off a device whose memory will be full: the smallest one that does not grow and frees enough, else one
    /// that grows, else the largest.
    fn relieve(&mut self, device: DeviceId, horizon: Seconds, now: Time, actions: &mut Vec<Action>) {
        let Some(device) = self.fleet.device(device) else { return };
        let grows = |tenant: &&Tenant| tenant.growth.rate().is_some();
        let rate: f64 = device.tenants.iter().filter_map(|tenant| tenant.growth.rate()).sum();
        let left = device.time_left(&self.config).map_or(0.0, Seconds::get);
        let enough = |tenant: &&Tenant| left + tenant.attributed().0 as f64 / rate > horizon.get();
        let (growing, steady): (Vec<&Tenant>, Vec<&Tenant>) =
            device.tenants.iter().filter(|tenant| self.can_go(device, tenant)).partition(grows);
        let smallest = steady.iter().copied().filter(enough).min_by_key(|tenant| tenant.attributed());
        let largest = || steady.iter().copied().max_by_key(|tenant| tenant.attributed());
        let Some(goes) = smallest.or_else(|| growing.first().copied()).or_else(largest) else { return };
        let itself = grows(&goes);
        let others = device.tenants.iter().filter(|tenant| tenant.attempt != goes.attempt && (itself || grows(tenant)));
        let (goes, from) = (goes.attempt, others.map(|tenant| tenant.attempt.job).collect());
        self.move_away(goes, from, now, actions);
    }
}
