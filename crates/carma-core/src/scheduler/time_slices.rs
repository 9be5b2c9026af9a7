//! Time slices: an attempt that can checkpoint is preempted after its time slice, if a waiting job can use its GPUs.
//!
//! Otherwise it continues. This is checked when a time slice ends, when a job starts to wait, and when devices or jobs change.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use super::action::{Action, Signal};
use super::preemption_plan::PreemptionPlan;
use super::timers::Timer;
use crate::job::StopReason;
use crate::units::Time;
use crate::{AttemptId, DeviceId, JobId};

/// Attempts whose time slice is over, and attempts that were signalled to stop.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TimeSlices {
    /// With the end of their time slice.
    over: BTreeMap<AttemptId, Time>,
    leaving: BTreeSet<AttemptId>,
    /// Something has changed since the last check.
    unseen: bool,
}

impl TimeSlices {
    /// Checks again after this event.
    pub(super) fn look_again(&mut self) {
        self.unseen = true;
    }

    /// Attempts whose time slice is over, the longest first.
    pub(super) fn longest_over(&self) -> Vec<AttemptId> {
        let mut over: Vec<(Time, AttemptId)> = self.over.iter().map(|(attempt, end)| (*end, *attempt)).collect();
        over.sort_unstable();
        over.into_iter().map(|(_, attempt)| attempt).collect()
    }

    /// Attempts that were signalled to stop.
    pub(super) fn leaving(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.leaving.iter().copied()
    }

    /// An attempt was signalled to stop.
    pub(super) fn leaves(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.insert(attempt);
    }

    /// An attempt has ended.
    pub(super) fn gone(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.remove(&attempt);
    }
}

impl Scheduler {
    /// When the time slice of a running job ends, if it has one.
    fn time_slice_end(&self, job: JobId) -> Option<(Time, AttemptId)> {
        let length = self.config.time_slices.length?;
        let job = self.jobs.get(&job).filter(|job| job.spec.may_checkpoint && job.spec.gpus > 0)?;
        let active = job.state.active().filter(|active| active.stopping.is_none())?;
        Some((active.launched_at + length, active.attempt))
    }

    /// Starts the time slice of a running job.
    pub(super) fn begin_time_slice(&mut self, job: JobId) {
        if let Some((end, attempt)) = self.time_slice_end(job) {
            self.timers.set(end, Timer::TimeSlice(attempt));
        }
    }

    /// Applies a new length to all time slices.
    pub(super) fn restart_time_slices(&mut self) {
        self.time_slices.over.clear();
        if self.config.time_slices.length.is_some() {
            let on_gpus: BTreeSet<JobId> =
                self.fleet.devices().flat_map(|device| &device.tenants).map(|tenant| tenant.attempt.job).collect();
            for job in on_gpus {
                self.begin_time_slice(job);
            }
        }
    }

    /// The timer of a time slice fired; its length may have changed since the timer was set.
    pub(super) fn time_slice_over(&mut self, attempt: AttemptId, now: Time) {
        if let Some((end, _)) = self.time_slice_end(attempt.job).filter(|(end, under_way)| *under_way == attempt && *end <= now) {
            self.time_slices.over.insert(attempt, end);
            self.time_slices.unseen = true;
        }
    }

    /// Checks again if the time slice of an attempt on this device is over: less of the device's memory is in use than before, so a
    /// waiting job may fit without that attempt.
    pub(super) fn look_again_on(&mut self, device: DeviceId) {
        let over = &self.time_slices.over;
        let expired =
            || self.fleet.device(device).is_some_and(|device| device.tenants.iter().any(|tenant| over.contains_key(&tenant.attempt)));
        if !over.is_empty() && expired() {
            self.time_slices.look_again();
        }
    }

    /// Preempts attempts whose time slice is over, where a waiting job can use their GPUs.
    pub(super) fn preempt(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.time_slices.over.is_empty() || !std::mem::take(&mut self.time_slices.unseen) {
            return;
        }
        for attempt in self.attempts_to_preempt(now) {
            self.stop(attempt, StopReason::TimeSliceOver, Signal::Checkpoint, now, actions);
        }
    }

    fn attempts_to_preempt(&self, now: Time) -> Vec<AttemptId> {
        let Some(head) = self.head() else { return Vec::new() };
        let depth = self.config.queue.backfill.unwrap_or(0) as usize;
        let kept = if depth > 0 { self.kept_for(head, now) } else { None };
        let mut plan = PreemptionPlan::new(self, now);
        let mut chosen = Vec::new();
        let mut behind = 0;
        for waiting in self.queues.in_order().filter_map(|job| self.jobs.get(&job)) {
            match plan.make_room(waiting, kept.as_slice()) {
                Some(victims) => chosen.extend(victims),
                // No job passes a waiting head, or only the first few behind it.
                None if behind >= depth => break,
                None => behind += 1,
            }
            if plan.over.is_empty() {
                break;
            }
        }
        chosen
    }
}
