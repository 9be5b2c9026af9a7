//! Time slots: attempts that can checkpoint and have had theirs make room for those who wait.
//!
//! An attempt whose slot is over goes on for as long as nobody waits who could use what it frees. Whether somebody could is
//! looked at when a slot ends, when a job comes to wait and when devices or jobs change.

use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use super::action::{Action, Signal};
use super::rehearsal::Rehearsal;
use super::timers::Timer;
use crate::job::StopReason;
use crate::units::Time;
use crate::{AttemptId, JobId};

/// Attempts that have had their slot, and attempts that were told to end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slots {
    /// With when their slot ended.
    over: BTreeMap<AttemptId, Time>,
    leaving: BTreeSet<AttemptId>,
    /// Something has changed since it was last looked who could use what slots leave.
    unseen: bool,
}

impl Slots {
    /// Somebody may wait now who could use what a slot leaves.
    pub(super) fn look_again(&mut self) {
        self.unseen = true;
    }

    /// Those whose slot is over, the longest first.
    pub(super) fn longest_over(&self) -> Vec<AttemptId> {
        let mut over: Vec<(Time, AttemptId)> = self.over.iter().map(|(attempt, end)| (*end, *attempt)).collect();
        over.sort_unstable();
        over.into_iter().map(|(_, attempt)| attempt).collect()
    }

    /// Those who were told to end.
    pub(super) fn leaving(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.leaving.iter().copied()
    }

    /// An attempt was told to end.
    pub(super) fn leaves(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.insert(attempt);
    }

    /// An attempt is over.
    pub(super) fn gone(&mut self, attempt: AttemptId) {
        self.over.remove(&attempt);
        self.leaving.remove(&attempt);
    }
}

impl Scheduler {
    /// When the slot of a running job ends, if it has one.
    fn slot_ends(&self, job: JobId) -> Option<(Time, AttemptId)> {
        let length = self.config.slots.length?;
        let job = self.jobs.get(&job).filter(|job| job.spec.may_checkpoint && job.spec.gpus > 0)?;
        let active = job.state.active().filter(|active| active.stopping.is_none())?;
        Some((active.launched_at + length, active.attempt))
    }

    /// A job runs, and its slot with it.
    pub(super) fn begin_slot(&mut self, job: JobId) {
        if let Some((end, attempt)) = self.slot_ends(job) {
            self.timers.set(end, Timer::Slot(attempt));
        }
    }

    /// Slots are of another length from now on.
    pub(super) fn begin_slots_anew(&mut self) {
        self.slots.over.clear();
        if self.config.slots.length.is_some() {
            let on_gpus: BTreeSet<JobId> =
                self.fleet.devices().flat_map(|device| &device.tenants).map(|tenant| tenant.attempt.job).collect();
            for job in on_gpus {
                self.begin_slot(job);
            }
        }
    }

    /// An attempt may have had its slot; its length may have changed since that was foreseen.
    pub(super) fn slot_over(&mut self, attempt: AttemptId, now: Time) {
        if let Some((end, _)) = self.slot_ends(attempt.job).filter(|(end, under_way)| *under_way == attempt && *end <= now) {
            self.slots.over.insert(attempt, end);
            self.slots.unseen = true;
        }
    }

    /// Asks those whose slot is over to make room for those who wait and could use it.
    pub(super) fn give_slots(&mut self, now: Time, actions: &mut Vec<Action>) {
        if self.slots.over.is_empty() || !std::mem::take(&mut self.slots.unseen) {
            return;
        }
        for attempt in self.to_make_room(now) {
            self.stop(attempt, StopReason::SlotOver, Signal::Checkpoint, now, actions);
        }
    }

    fn to_make_room(&self, now: Time) -> Vec<AttemptId> {
        let Some(head) = self.head() else { return Vec::new() };
        let depth = self.config.queue.discipline.depth() as usize;
        let kept = if depth > 0 { self.kept_for(head, now) } else { None };
        let mut rehearsal = Rehearsal::new(self, now);
        let mut asked = Vec::new();
        let mut behind = 0;
        for waiting in self.queues.in_order().filter_map(|job| self.jobs.get(&job)) {
            let reservation = kept.as_ref().filter(|kept| kept.head != waiting.id());
            match rehearsal.make_room(waiting, reservation) {
                Some(victims) => asked.extend(victims),
                // Nobody passes a head that waits, or only those near to it.
                None if behind >= depth => break,
                None => behind += 1,
            }
            if rehearsal.over.is_empty() {
                break;
            }
        }
        asked
    }
}
