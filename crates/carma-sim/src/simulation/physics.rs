//! How jobs live and what the monitor makes of them: constants that are assumed or read off published runs.

use crate::interference::START_UP;

/// Constants of the simulated world that no table of measurements gives.
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
    /// What a process takes to write a checkpoint when it is told to, in seconds. It does not train meanwhile.
    pub checkpoint: f64,
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
            start_up: (START_UP, 0.56),
            longest_start_up: 55.5,
            loading: (15.0, 0.3),
            winding_down: (25.0, 0.3),
            checkpoint: 10.0,
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
    /// Requests for memory after the first.
    pub const REQUESTS: u32 = 2;

    /// The share of its peak a process holds after so many requests beyond the first.
    pub fn memory_share(&self, requests: u32) -> f64 {
        if requests >= Self::REQUESTS {
            1.0
        } else {
            self.first_memory + (1.0 - self.first_memory) * f64::from(requests) / f64::from(Self::REQUESTS)
        }
    }

    /// How much longer steps take on a server whose GPUs have so many busy processes.
    pub fn host_slowdown(&self, busy: usize, gpus: f64) -> f64 {
        1.0 + self.host_contention * (busy as f64 / gpus - 1.0).max(0.0)
    }

    /// Nothing is random, and memory is taken at once: for schedules worked out by hand.
    pub const fn certain(start_up: f64) -> Self {
        Self {
            start_up: (start_up, 0.0),
            longest_start_up: start_up,
            loading: (0.0, 0.0),
            winding_down: (0.0, 0.0),
            checkpoint: 10.0,
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
