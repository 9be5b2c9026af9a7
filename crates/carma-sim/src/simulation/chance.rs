//! Random draws from one seed. They depend on the job and the attempt, not on the time, so that two policies with the same seed see the same
//! jobs. Only the monitor's noise depends on the order of events.

use super::physics::Physics;
use crate::random::{Random, scramble};

/// Draws for one attempt, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// From launch to the first GPU activity.
    pub start_up: f64,
    /// From then to the first training step.
    pub loading: f64,
    /// From the last training step to the exit.
    pub winding_down: f64,
    /// Factor on the time alone.
    pub run_time: f64,
    /// From the first memory allocation to the peak.
    pub growth: f64,
}

impl Draw {
    /// Draws for an attempt of the job with this index in the trace.
    pub fn new(physics: &Physics, seed: u64, job: usize, attempt: u32) -> Self {
        // The run-time factor belongs to the job: all its attempts have the same length.
        let mut job_chance = Chance::new(seed, Purpose::RunTime, job as u64, 0);
        let mut chance = Chance::new(seed, Purpose::Phases, job as u64, u64::from(attempt));
        let mut spread = |(median, deviation): (f64, f64)| median * (deviation * chance.normal()).exp();
        let start_up = spread(physics.start_up).min(physics.longest_start_up);
        let growth = spread(physics.growth);
        let (loading, winding_down) = (spread(physics.loading), spread(physics.winding_down));
        let run_time = (1.0 + physics.run_time * job_chance.normal()).max(0.1);
        Self { start_up, loading, winding_down, run_time, growth }
    }

    /// For a job that takes `seconds` alone: the phases, limited to a quarter of that each, and the remaining training time.
    #[must_use]
    pub fn for_job(self, seconds: f64) -> (Self, f64) {
        let alone = seconds * self.run_time;
        let cut = |span: f64| span.min(alone / 4.0);
        let fitted = Self { start_up: cut(self.start_up), loading: cut(self.loading), winding_down: cut(self.winding_down), ..self };
        (fitted, alone - fitted.start_up - fitted.loading - fitted.winding_down)
    }
}

/// Purpose of a draw.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// How long a job takes.
    RunTime,
    /// The phases of an attempt.
    Phases,
    /// Errors of the estimates that the scheduler gets.
    Estimates,
    /// Noise of the monitor.
    Monitor,
    /// Deviation of a pair of workloads from the interference model.
    Pair,
    /// Whether a job can checkpoint.
    Checkpoint,
    /// Whether a job reports its progress.
    Progress,
}

/// Draws for one purpose and one object.
///
/// Seeds come in pairs, and the second of a pair draws the mirror image of the first: a mean over seeds then contains the centre of
/// every draw, and is closer to the mean over many seeds.
#[derive(Debug)]
pub(super) struct Chance {
    generator: Random,
    mirrored: bool,
}

impl Chance {
    pub(super) fn new(seed: u64, purpose: Purpose, first: u64, second: u64) -> Self {
        let mixed = [purpose as u64, first, second].into_iter().fold(seed / 2, |mixed, part| scramble(mixed ^ scramble(part)));
        Self { generator: Random::new(mixed), mirrored: seed % 2 == 1 }
    }

    /// True with this probability.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        let drawn = self.generator.fraction();
        (if self.mirrored { 1.0 - drawn } else { drawn }) < share
    }

    /// A draw from the standard normal distribution (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.generator.fraction(), self.generator.fraction());
        let drawn = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        if self.mirrored { -drawn } else { drawn }
    }
}
