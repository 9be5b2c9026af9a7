//! What chance does, from one seed. What happens to a job is drawn for the job and the attempt rather than for a moment, so that two
//! policies under one seed meet the same jobs. Only the monitor's noise follows the order of events.

use fastrand::Rng;

use super::physics::Physics;

/// What is drawn for one attempt; spans are in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// From launch to the first GPU activity.
    pub start_up: f64,
    /// From there to the first training step.
    pub loading: f64,
    /// After the last training step.
    pub winding_down: f64,
    /// A factor on the time alone.
    pub run_time: f64,
    /// From the first memory taken to the peak.
    pub growth: f64,
}

impl Draw {
    /// For the job at this place of a trace, and one of its attempts.
    pub fn new(physics: &Physics, seed: u64, job: usize, attempt: u32) -> Self {
        // The run-time factor belongs to the job: a second attempt of it is as long as the first.
        let mut job_chance = Chance::new(seed, Purpose::RunTime, job as u64, 0);
        let mut chance = Chance::new(seed, Purpose::Phases, job as u64, u64::from(attempt));
        let mut spread = |(median, deviation): (f64, f64)| median * (deviation * chance.normal()).exp();
        let start_up = spread(physics.start_up).min(physics.longest_start_up);
        let growth = spread(physics.growth);
        let (loading, winding_down) = (spread(physics.loading), spread(physics.winding_down));
        let run_time = (1.0 + physics.run_time * job_chance.normal()).max(0.1);
        Self { start_up, loading, winding_down, run_time, growth }
    }

    /// For a job that takes so long when alone: the phases cut to what it can spend on what is not training, and the training left.
    #[must_use]
    pub fn for_job(self, seconds: f64) -> (Self, f64) {
        let alone = seconds * self.run_time;
        let cut = |span: f64| span.min(alone / 4.0);
        let fitted = Self { start_up: cut(self.start_up), loading: cut(self.loading), winding_down: cut(self.winding_down), ..self };
        (fitted, alone - fitted.start_up - fitted.loading - fitted.winding_down)
    }
}

/// What a draw is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// How long a job takes.
    RunTime,
    /// The phases of an attempt.
    Phases,
    /// How far off what the scheduler is told is.
    Telling,
    /// What the monitor reads.
    Monitor,
    /// How far a pair of workloads lies from the model.
    Pair,
    /// Whether a job can checkpoint.
    Checkpoint,
    /// Whether a job tells how far it is.
    Progress,
}

/// Draws for one purpose and one thing.
///
/// Seeds come in pairs, and the second of a pair draws the mirror image of the first: a mean over seeds then has the middle of every draw in
/// it, and is nearer to what many more seeds would give.
#[derive(Debug)]
pub(super) struct Chance {
    generator: Rng,
    mirrored: bool,
}

impl Chance {
    pub(super) fn new(seed: u64, purpose: Purpose, first: u64, second: u64) -> Self {
        let mixed = [purpose as u64, first, second].into_iter().fold(seed / 2, |mixed, part| scramble(mixed ^ scramble(part)));
        Self { generator: Rng::with_seed(mixed), mirrored: seed % 2 == 1 }
    }

    /// Whether something happens that does so in this share of cases.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        let drawn = self.generator.f64();
        (if self.mirrored { 1.0 - drawn } else { drawn }) < share
    }

    /// A draw from the standard normal distribution (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.generator.f64(), self.generator.f64());
        let drawn = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        if self.mirrored { -drawn } else { drawn }
    }
}

/// The finaliser of `SplitMix64`: neighbouring numbers become unrelated ones.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}
