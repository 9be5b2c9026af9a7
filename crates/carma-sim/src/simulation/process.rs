//! An attempt under way: how far it is, how fast, and what it holds.

use carma_core::{AttemptId, Seconds, Time};

use super::chance::Draw;

/// Where a process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// On the CPU; its GPUs have seen nothing of it.
    StartingUp,
    /// On its GPUs, not yet training.
    Loading,
    /// Training, as fast as its neighbours let it.
    Training,
    /// Done with training.
    WindingDown,
    /// Writing down how far it is, to end then.
    Saving,
}

/// Training to do and done, in seconds as when alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Training {
    pub(super) work: f64,
    pub(super) done: f64,
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) attempt: AttemptId,
    /// The job's place in the trace.
    pub(super) job: usize,
    /// Its GPUs, by rank.
    pub(super) gpus: Vec<usize>,
    pub(super) phase: Phase,
    /// Requests for memory made so far.
    pub(super) requests: u32,
    pub(super) draw: Draw,
    /// Training to do, in seconds as when alone.
    work: f64,
    done: f64,
    speed: f64,
    since: Time,
    /// The number of its present plan; what was planned under another is void.
    pub(super) plan: u64,
    /// The number under which its end is planned.
    pub(super) end_plan: u64,
}

impl Process {
    pub(super) fn new(attempt: AttemptId, job: usize, gpus: Vec<usize>, training: Training, draw: Draw, plan: u64, now: Time) -> Self {
        let phase = Phase::StartingUp;
        let Training { work, done } = training;
        Self { attempt, job, gpus, phase, requests: 0, draw, work, done, speed: 0.0, since: now, plan, end_plan: 0 }
    }

    /// How far it is.
    pub(super) fn training(&self, now: Time) -> Training {
        Training { work: self.work, done: (self.done + (now - self.since).get() * self.speed).min(self.work) }
    }

    /// Goes on at another speed. Returns whether it is another one.
    pub(super) fn set_speed(&mut self, speed: f64, now: Time) -> bool {
        // Speeds are compared as they are: equal inputs give equal bits.
        if speed.to_bits() == self.speed.to_bits() {
            return false;
        }
        self.done += (now - self.since).get() * self.speed;
        (self.since, self.speed) = (now, speed);
        true
    }

    /// When it will have done its training at its present speed; unset while it does not train.
    pub(super) fn trained_at(&self) -> Option<Time> {
        let left = ((self.work - self.done) / self.speed).max(0.0);
        // More than a clock can count is never.
        (self.speed > 0.0).then(|| Seconds::new(left).map_or(Time::MAX, |left| self.since + left))
    }
}
