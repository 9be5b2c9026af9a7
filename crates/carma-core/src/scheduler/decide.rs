//! The decision: which jobs start now, and where.

use super::Scheduler;
use super::action::{Action, LaunchReason};
use super::dirty_scope::DirtyScope;
use super::timers::Timer;
use crate::JobId;
use crate::admission::{Demand, HeadReservation, JobQuestion};
use crate::config::PowerPreference;
use crate::job::{Job, Placement};
use crate::mapping;
use crate::obstacle::PlacementKind;
use crate::units::{Seconds, Time};

/// How long GPUs that should be free for the head by now are kept before that is planned again.
const REPLAN_INTERVAL: Seconds = Seconds::from_secs(10);

impl Scheduler {
    /// Starts every job that may start: jobs without GPUs whenever a host takes them; jobs with GPUs in order, until one
    /// must wait; then, with backfill, those behind it that do not make it wait longer.
    pub(super) fn decide(&mut self, now: Time, actions: &mut Vec<Action>) {
        let mut kept = Vec::new();
        loop {
            self.start_gpu_jobs(&mut kept, now, actions);
            // Last, because a job that is set aside as too large may give its turn in an array to one without GPUs.
            self.start_cpu_jobs(now, actions);
            if self.dirty == DirtyScope::Nothing {
                return;
            }
            if self.reservation.as_ref().is_some_and(|kept| self.is_due(kept.head, now)) {
                kept.extend(self.reservation.take());
            }
        }
    }

    fn start_gpu_jobs(&mut self, kept: &mut Vec<HeadReservation>, now: Time, actions: &mut Vec<Action>) {
        self.review_critical(now);
        let mut dirty = std::mem::take(&mut self.dirty);
        if self.fleet.take_improved() {
            dirty = DirtyScope::Anything;
            self.time_slices.look_again();
        }
        let mut new_jobs = match dirty {
            DirtyScope::Nothing => return,
            DirtyScope::NewJobs(jobs) if self.head().is_none_or(|head| !jobs.contains(&head)) => Some(jobs),
            DirtyScope::NewJobs(_) | DirtyScope::Anything => None,
        };
        loop {
            if new_jobs.is_none() {
                self.start_in_order(kept, now, actions);
            }
            let (head, before, reserve) = (self.head(), actions.len(), self.queues.main.reserve.is_active());
            if let (Some(depth), Some(head)) = (self.config.queue.backfill, head) {
                self.backfill((head, depth), kept, new_jobs.as_deref(), now, actions);
            }
            self.review_critical(now);
            // A job that passes the head can move the host kept for a job without GPUs, or the GPUs kept for users below their share.
            // Then the head may fit.
            let what_is_kept_moves = self.queues.host_head().is_some() || reserve;
            if self.head() == head && !(actions.len() > before && what_is_kept_moves) {
                break;
            }
            // A launch that took less of a quota than expected gives a turn to a job before the head.
            new_jobs = None;
        }
        // The head may have been another one in between. Moved, not copied: every decision with open GPUs comes here.
        if !kept.is_empty()
            && let Some(head) = self.head()
            && let Some(place) = kept.iter().position(|kept| kept.head == head)
        {
            let kept = kept.swap_remove(place);
            // Predictions err: then GPUs are not kept any longer, or for longer.
            if let Some(from) = kept.from.filter(|_| kept.predicted) {
                self.timers.set(from.max(now + REPLAN_INTERVAL), Timer::Reservation);
            }
            self.reservation = Some(kept);
        }
        // Launches and jobs that were set aside are part of this decision.
        self.dirty = DirtyScope::Nothing;
        self.fleet.take_improved();
    }

    /// Starts jobs from the head on, until one must wait.
    fn start_in_order(&mut self, kept: &mut Vec<HeadReservation>, now: Time, actions: &mut Vec<Action>) {
        loop {
            // A job that started or was set aside leaves less work before the longest.
            self.review_critical(now);
            let Some(head) = self.head() else { return };
            if self.switch_to_gain(head, now, actions) || self.start(head, None, &[], now, actions) {
                // Its devices may have been kept for a job that is behind it now.
                kept.clear();
                continue;
            }
            let fits = self.jobs.get(&head).and_then(|job| mapping::fits_until(&self.fleet, &self.demand(job, now)));
            if let Some(until) = fits {
                self.look_when_closed(head, until);
                if self.switch_for(head, kept, now, actions) {
                    kept.clear();
                }
                return;
            }
            self.set_aside(head, now);
        }
    }

    pub(super) fn demand<'a>(&self, job: &'a Job, now: Time) -> Demand<'a> {
        Demand::of(job, &self.config, &self.fleet, now)
    }

    /// The question of whether a job may go somewhere, apart from where.
    pub(super) fn question<'a>(&'a self, demand: &'a Demand<'a>, kind: PlacementKind, kept: &'a [HeadReservation]) -> JobQuestion<'a> {
        let suspended_by = self.queues.first_to_recover().filter(|_| self.config.recovery.suspend_collocation);
        let host_kept = self.host_kept_before(demand);
        let reserve = self.queues.main.reserve.bound(demand.spec.user);
        let pressure = self.queues.main.len() as f64 / self.fleet.gpu_count().max(1) as f64;
        JobQuestion {
            demand,
            kind,
            config: &self.config,
            kept,
            host_kept,
            reserve,
            suspended_by,
            cursor: self.cursor,
            packs: false,
            pressure,
        }
    }

    /// Starts a job where it leaves intact what is kept for others.
    fn start(&mut self, job: JobId, passed: Option<JobId>, kept: &[HeadReservation], now: Time, actions: &mut Vec<Action>) -> bool {
        let Some(known) = self.jobs.get(&job) else { return false };
        let Some((placement, kind)) = self.place(known, kept, now) else { return false };
        self.launch(job, placement, LaunchReason { kind: Some(kind), passed }, now, actions);
        true
    }

    pub(super) fn place(&self, job: &Job, kept: &[HeadReservation], now: Time) -> Option<(Placement, PlacementKind)> {
        let demand = self.demand(job, now);
        let kinds = if self.config.admission.idle_first {
            [PlacementKind::Idle, PlacementKind::Share]
        } else {
            [PlacementKind::Share, PlacementKind::Idle]
        };
        let find = |kind, packs| {
            // Most jobs are considered while all GPUs are in use.
            if self.fleet.open_devices(kind) < demand.width() {
                return None;
            }
            let question = JobQuestion { packs, ..self.question(&demand, kind, kept) };
            Some((mapping::find(&self.fleet, &question, now)?, kind))
        };
        let packs = self.config.power.prefer == PowerPreference::Pack;
        packs.then(|| find(PlacementKind::Share, true)).flatten().or_else(|| kinds.into_iter().find_map(|kind| find(kind, false)))
    }

    /// Starts jobs behind a head that waits, where they leave intact what is kept for it and for the other heads of this decision: all jobs
    /// that are near enough, or only the new ones among them.
    ///
    /// A launch can put the job of another user at the head, and the next launch the first job again. So each keeps what is kept for it.
    fn backfill(
        &mut self,
        (head, depth): (JobId, u32),
        kept: &mut Vec<HeadReservation>,
        mut new_jobs: Option<&[JobId]>,
        now: Time,
        actions: &mut Vec<Action>,
    ) {
        if self.fleet.open_devices(PlacementKind::Idle) == 0 && self.fleet.open_devices(PlacementKind::Share) == 0 {
            return;
        }
        loop {
            let near = self.queues.in_order().filter(|job| *job != head).take(depth as usize);
            let behind: Vec<JobId> = near.filter(|job| new_jobs.is_none_or(|new_jobs| new_jobs.contains(job))).collect();
            if behind.is_empty() {
                return;
            }
            if HeadReservation::of(head, kept).is_none() {
                let Some(planned) = self.take_kept_for(head, now) else { return };
                kept.push(planned);
            }
            let started = behind.into_iter().filter(|job| self.start(*job, Some(head), kept, now, actions)).count();
            if started == 0 {
                return;
            }
            // Further jobs are within the backfill depth now.
            new_jobs = None;
        }
    }
}
