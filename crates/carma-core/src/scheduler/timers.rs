//! What happens by itself when time passes.

use std::collections::BTreeSet;

use super::Scheduler;
use super::action::{Action, Signal};
use crate::config::Config;
use crate::device::Device;
use crate::job::StopReason;
use crate::units::Time;
use crate::{AttemptId, DeviceId, JobId};

/// Something that falls due. One that has lost its point does nothing when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A gate opens.
    Gate(DeviceId),
    /// A reservation may be trimmed.
    Trim(DeviceId),
    /// An attempt reaches its time limit.
    Limit(AttemptId),
    /// An attempt that was signalled to stop has had its grace.
    Grace(AttemptId),
    /// A job may begin.
    Begin(JobId),
    /// The time slice of an attempt is over.
    TimeSlice(AttemptId),
    /// An attempt may have been idle for long enough.
    Idle(AttemptId),
    /// A switch of a GPU's mode has gone unanswered, or the GPU may be switched again.
    Switch(DeviceId),
    /// A job can no longer start where it could until now.
    ServerCloses(JobId),
    /// GPUs that are kept for the head should be free for it.
    Reservation,
    /// A user has been away for so long that nothing is kept for it any more.
    FairShareReserve,
}

/// Timers by when they fall due.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Timers {
    due: BTreeSet<(Time, Timer)>,
}

impl Timers {
    pub(super) fn set(&mut self, at: Time, timer: Timer) {
        self.due.insert((at, timer));
    }

    pub(super) fn cancel(&mut self, at: Time, timer: Timer) {
        self.due.remove(&(at, timer));
    }

    /// What fell due at one time falls due at another, or not at all.
    pub(super) fn reschedule(&mut self, timer: Timer, before: Option<Time>, after: Option<Time>) {
        if before == after {
            return;
        }
        if let Some(at) = before {
            self.cancel(at, timer);
        }
        if let Some(at) = after {
            self.set(at, timer);
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    fn pop(&mut self, now: Time) -> Option<Timer> {
        if self.next()? > now { None } else { self.due.pop_first().map(|(_, timer)| timer) }
    }
}

impl Scheduler {
    /// Changes a device, and moves the timers of its gate and of its reservations with it.
    pub(super) fn update_timed<R>(&mut self, id: DeviceId, now: Time, change: impl FnOnce(&mut Device, &Config) -> R) -> Option<R> {
        let config = &self.config;
        let times = |device: &Device| (device.gate.opens_at(), device.trims_at(config));
        let before = times(self.fleet.device(id)?);
        let result = self.fleet.update(id, config, now, |device| change(device, config))?;
        let after = times(self.fleet.device(id)?);
        self.timers.reschedule(Timer::Gate(id), before.0, after.0);
        self.timers.reschedule(Timer::Trim(id), before.1, after.1);
        Some(result)
    }

    pub(super) fn fire_timers(&mut self, now: Time, actions: &mut Vec<Action>) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                // Looking at the device again is all it takes.
                Timer::Gate(device) => {
                    self.fleet.update(device, &self.config, now, |_| ());
                }
                Timer::Trim(device) => {
                    self.fleet.update(device, &self.config, now, |_| ());
                    // Another reservation there may be next.
                    if let Some(at) = self.fleet.device(device).and_then(|device| device.trims_at(&self.config)) {
                        self.timers.set(at, Timer::Trim(device));
                    }
                }
                Timer::Idle(attempt) => self.judge_idle(attempt, now, actions),
                Timer::FairShareReserve => self.reserve_may_end(now),
                Timer::Switch(gpu) => self.look_at_switch(gpu, now),
                Timer::ServerCloses(_) | Timer::Reservation => self.mark_all_dirty(),
                Timer::Begin(job) => self.enqueue(job, now),
                Timer::TimeSlice(attempt) => self.time_slice_over(attempt, now),
                Timer::Limit(attempt) => self.stop(attempt, StopReason::TimeLimit, Signal::Terminate, now, actions),
                Timer::Grace(attempt) => {
                    let active = self.jobs.get(&attempt.job).and_then(|job| job.state.active());
                    if let Some(reason) = active.filter(|active| active.attempt == attempt).and_then(|active| active.stopping) {
                        actions.push(Action::Signal { attempt, signal: Signal::Kill, reason });
                    }
                }
            }
        }
    }
}
