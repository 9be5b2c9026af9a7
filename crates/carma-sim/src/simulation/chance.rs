//! What chance does, from one seed. Each draw belongs to a job and an attempt rather than to a moment, so that two policies under one
//! seed meet the same jobs.

use fastrand::Rng;

/// Sizes of what is random.
#[derive(Debug, Clone, PartialEq)]
pub struct Physics {
    /// From launch to the first GPU activity, in seconds: the median, and the spread of its logarithm. Published: 8.2 s, p95 20.6 s.
    pub start_up: (f64, f64),
    /// It never takes longer than this; published: 55.5 s.
    pub longest_start_up: f64,
    /// From there to the first training step, in seconds, likewise: memory is held and little is run.
    pub loading: (f64, f64),
    /// After the last training step, in seconds, likewise: validation, saving, tearing down.
    pub winding_down: (f64, f64),
    /// The share of its counters a process shows while loading and winding down.
    pub quiet: f64,
    /// The spread of run times of the same job, as a share.
    pub run_time: f64,
    /// The share of its peak a process takes at once.
    pub first_memory: f64,
    /// From there to its peak, in seconds: the median, and the spread of its logarithm.
    pub growth: (f64, f64),
    /// What the monitor reads of SMACT and SMOCC, as a share of what the catalogue says.
    pub reading: f64,
    /// What each process a GPU beyond the first, on average over a server, adds to everybody's steps there, as a share: cores, host memory and
    /// disks are shared too.
    pub host_contention: f64,
    /// The spread of counters within a window, as a share of their level.
    pub telemetry: f64,
}

impl Default for Physics {
    fn default() -> Self {
        Self {
            start_up: (8.2, 0.56),
            longest_start_up: 55.5,
            loading: (15.0, 0.3),
            winding_down: (25.0, 0.3),
            quiet: 0.2,
            run_time: 0.015,
            first_memory: 0.8,
            growth: (20.0, 0.8),
            reading: 0.8,
            host_contention: 0.06,
            telemetry: 0.05,
        }
    }
}

impl Physics {
    /// Nothing is random, and memory is taken at once: for schedules worked out by hand.
    pub const fn certain(start_up: f64) -> Self {
        Self {
            start_up: (start_up, 0.0),
            longest_start_up: start_up,
            loading: (0.0, 0.0),
            winding_down: (0.0, 0.0),
            quiet: 0.0,
            run_time: 0.0,
            first_memory: 1.0,
            growth: (0.0, 0.0),
            reading: 1.0,
            host_contention: 0.0,
            telemetry: 0.0,
        }
    }
}

/// What is drawn for one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) start_up: f64,
    pub(super) loading: f64,
    pub(super) winding_down: f64,
    /// A factor on the time alone.
    pub(super) run_time: f64,
    pub(super) growth: f64,
}

impl Draw {
    pub(super) fn new(physics: &Physics, seed: u64, job: usize, attempt: u32) -> Self {
        // The run-time factor belongs to the job: a second attempt of it is as long as the first.
        let mut job_chance = stream(seed, 1, job as u64, 0);
        let mut chance = stream(seed, 2, job as u64, u64::from(attempt));
        let mut spread = |(median, deviation): (f64, f64)| median * (deviation * normal(&mut chance)).exp();
        let start_up = spread(physics.start_up).min(physics.longest_start_up);
        let growth = spread(physics.growth);
        let (loading, winding_down) = (spread(physics.loading), spread(physics.winding_down));
        let run_time = (1.0 + physics.run_time * normal(&mut job_chance)).max(0.1);
        Self { start_up, loading, winding_down, run_time, growth }
    }
}

/// A generator of its own for each purpose and each thing.
pub(super) fn stream(seed: u64, purpose: u64, first: u64, second: u64) -> Rng {
    let mixed = [purpose, first, second].into_iter().fold(seed, |mixed, part| scramble(mixed ^ scramble(part)));
    Rng::with_seed(mixed)
}

/// The finaliser of `SplitMix64`: neighbouring numbers become unrelated ones.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// A draw from the standard normal distribution (Box and Muller).
pub(super) fn normal(chance: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - chance.f64(), chance.f64());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
