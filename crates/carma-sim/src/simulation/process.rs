//! A running attempt: its progress, speed and memory.

use carma_core::{AttemptId, Seconds, Time};

use super::chance::Draw;

/// Phase of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// On the CPU; not yet visible on its GPUs.
    StartingUp,
    /// On its GPUs, not yet training.
    Loading,
    /// Training, at a speed limited by its neighbours.
    Training,
    /// Done with training.
    WindingDown,
    /// Writing a checkpoint, then exiting.
    Saving,
}

/// Total and completed training, in seconds when alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Training {
    pub(super) work: f64,
    pub(super) done: f64,
}

/// A running attempt.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) attempt: AttemptId,
    /// The job's index in the trace.
    pub(super) job: usize,
    /// Its GPUs, by rank.
    pub(super) gpus: Vec<usize>,
    pub(super) phase: Phase,
    /// Requests for memory made so far.
    pub(super) requests: u32,
    pub(super) draw: Draw,
    /// Total training, in seconds when alone.
    work: f64,
    done: f64,
    speed: f64,
    since: Time,
    /// Number of its current plan; events of older plans are void.
    pub(super) plan: u64,
    /// Number of the plan that contains its end.
    pub(super) end_plan: u64,
}

impl Process {
    pub(super) fn new(attempt: AttemptId, job: usize, gpus: Vec<usize>, training: Training, draw: Draw, plan: u64, now: Time) -> Self {
        let phase = Phase::StartingUp;
        let Training { work, done } = training;
        Self { attempt, job, gpus, phase, requests: 0, draw, work, done, speed: 0.0, since: now, plan, end_plan: 0 }
    }

    /// Its progress.
    pub(super) fn training(&self, now: Time) -> Training {
        Training { work: self.work, done: (self.done + (now - self.since).get() * self.speed).min(self.work) }
    }

    /// Sets its speed. Returns whether the speed changed.
    pub(super) fn set_speed(&mut self, speed: f64, now: Time) -> bool {
        // Exact comparison: equal inputs give equal bits.
        if speed.to_bits() == self.speed.to_bits() {
            return false;
        }
        self.done += (now - self.since).get() * self.speed;
        (self.since, self.speed) = (now, speed);
        true
    }

    /// When it finishes training at its current speed; unset while it does not train.
    pub(super) fn trained_at(&self) -> Option<Time> {
        let left = ((self.work - self.done) / self.speed).max(0.0);
        // A time beyond the range of the clock means never.
        (self.speed > 0.0).then(|| Seconds::new(left).map_or(Time::MAX, |left| self.since + left))
    }
}
