//! The work of running attempts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Scheduler;
use crate::AttemptId;
use crate::job::Placement;
use crate::tenant::{Tenant, Work};
use crate::units::Time;

/// Predicted remaining GPU time of running attempts, as far as known. Kept as sums, because every decision reads it.
///
/// The remaining work of a rank falls at its speed until only the least part is left, and then stays constant.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Backlog {
    /// Ranks by when only the least part is left.
    falling: BTreeMap<Time, Sum>,
    sum: Sum,
    /// Milliseconds left of ranks that should have ended by now.
    least: u128,
    /// Ranks were last moved from the falling ones at this time.
    reviewed: Time,
}

/// A sum over ranks, in microseconds: what is left at time zero, and how much less it is each millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sum {
    ranks: u32,
    left: i128,
    speed: i128,
    least: u128,
}

impl Sum {
    fn of(work: &Work) -> Self {
        let (left, speed) = work.line();
        Self { ranks: 1, left, speed, least: u128::from(work.least()) }
    }

    fn add(&mut self, other: Self) {
        self.ranks += other.ranks;
        (self.left, self.speed, self.least) = (self.left + other.left, self.speed + other.speed, self.least + other.least);
    }

    fn subtract(&mut self, other: Self) {
        self.ranks -= other.ranks;
        (self.left, self.speed, self.least) = (self.left - other.left, self.speed - other.speed, self.least - other.least);
    }
}

impl Backlog {
    pub(super) fn add(&mut self, work: Option<Work>) {
        let Some(work) = work else { return };
        let sum = Sum::of(&work);
        if work.nears_end_at() <= self.reviewed {
            self.least += sum.least;
        } else {
            self.falling.entry(work.nears_end_at()).or_default().add(sum);
            self.sum.add(sum);
        }
    }

    pub(super) fn remove(&mut self, work: Option<Work>) {
        let Some(work) = work else { return };
        let sum = Sum::of(&work);
        if work.nears_end_at() <= self.reviewed {
            self.least -= sum.least;
        } else if let Entry::Occupied(mut falling) = self.falling.entry(work.nears_end_at()) {
            self.sum.subtract(sum);
            falling.get_mut().subtract(sum);
            if falling.get().ranks == 0 {
                falling.remove();
            }
        }
    }

    /// Moves ranks that should have ended by now.
    pub(super) fn review(&mut self, now: Time) {
        while let Some(next) = self.falling.first_entry().filter(|next| *next.key() <= now) {
            let sum = next.remove();
            self.sum.subtract(sum);
            self.least += sum.least;
        }
        self.reviewed = self.reviewed.max(now);
    }

    /// Whether it is the work of these, for checks.
    pub(super) fn is_of<'a>(&self, tenants: impl Iterator<Item = &'a Tenant>, now: Time) -> bool {
        let (mut kept, mut recomputed) = (self.clone(), Self::default());
        tenants.for_each(|tenant| recomputed.add(tenant.work));
        kept.review(now);
        recomputed.review(now);
        kept == recomputed
    }

    /// Milliseconds left, after a review.
    pub(super) fn left(&self, now: Time) -> u128 {
        let falling = (self.sum.left - self.sum.speed * i128::from(now.milliseconds())).max(0) as u128;
        self.least + falling / 1000
    }
}

impl Scheduler {
    /// The tenants of these devices changed: all attempts on them continue at other predicted speeds.
    pub(super) fn predict_speeds(&mut self, placement: &Placement, now: Time) {
        if !self.config.mapping.policy.predicts() {
            return;
        }
        let devices = placement.devices.iter().filter_map(|granted| self.fleet.device(granted.device));
        let with_work = devices.flat_map(|device| &device.tenants).filter(|tenant| tenant.work.is_some());
        let mut attempts: Vec<AttemptId> = with_work.map(|tenant| tenant.attempt).collect();
        attempts.sort_unstable();
        attempts.dedup();
        for attempt in attempts {
            let Some(active) = self.jobs.get(&attempt.job).and_then(|job| job.state.active()) else { continue };
            let devices = active.placement.devices.iter().filter_map(|granted| self.fleet.device(granted.device));
            // An attempt is as fast as its slowest rank.
            let slowest = devices.map(|device| device.predicted_slowdown(attempt)).fold(1.0, f64::max);
            self.change_work(attempt, |work| work.set_speed(1.0 / slowest, now));
        }
    }

    /// Changes the work of all ranks of an attempt.
    pub(super) fn change_work(&mut self, attempt: AttemptId, change: impl Fn(&mut Work)) {
        let Some(active) = self.jobs.get(&attempt.job).and_then(|job| job.state.active()) else { return };
        for granted in &active.placement.devices {
            let Some(work) = self.fleet.work_mut(granted.device, attempt) else { continue };
            self.backlog.remove(Some(*work));
            change(work);
            self.backlog.add(Some(*work));
        }
    }
}
