//! Constants of job behaviour and monitoring: assumed, or taken from published runs.

use carma_core::{Fraction, MiB};

use crate::interference::START_UP;

/// What a process requests of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRequest {
    /// All that it holds from then on.
    pub wanted: MiB,
    /// What it takes on a full GPU: PyTorch frees its cache before it fails.
    pub without_cache: MiB,
    /// Whether its memory grows no more.
    pub is_last: bool,
}

/// Constants of the simulation that are not in any table of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Physics {
    /// From launch to the first GPU activity, in seconds: the median, and the spread of its logarithm. Published: 8.2 s, p95 20.6 s.
    pub start_up: (f64, f64),
    /// Upper limit of the start-up time; published: 55.5 s.
    pub longest_start_up: f64,
    /// From then to the first training step, in seconds, likewise: the process holds memory and runs little.
    pub loading: (f64, f64),
    /// After the last training step, in seconds, likewise: validation, saving, teardown.
    pub winding_down: (f64, f64),
    /// Seconds to write a checkpoint on request. The process does not train meanwhile.
    pub checkpoint: f64,
    /// Share of its counters that a process shows while loading and winding down.
    pub quiet: f64,
    /// Relative spread of run times of the same job.
    pub run_time: f64,
    /// Share of its peak that a process allocates at once.
    pub first_memory: f64,
    /// Share of its memory that is cache, and that it can do without on a full GPU: the median of what PyTorch's allocator holds without a live
    /// tensor at the peak, over 35 published model descriptions (`fragmentation` in `carma estimate --json`).
    pub cached: f64,
    /// From then to its peak, in seconds: the median, and the spread of its logarithm.
    pub growth: (f64, f64),
    /// Readings of SMACT and SMOCC by the monitor, relative to the catalogue.
    pub reading: f64,
    /// Relative increase of all step times on a server for each process per GPU beyond the first, averaged over the server: processes share
    /// cores, host memory and disks too.
    pub host_contention: f64,
    /// Relative spread of counters within a window.
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
            cached: 0.1,
            growth: (20.0, 0.8),
            reading: 0.8,
            host_contention: 0.06,
            telemetry: 0.05,
        }
    }
}

impl Physics {
    /// Number of memory requests after the first.
    pub const REQUESTS: u32 = 2;

    /// The memory that a process of this peak requests, after this many requests beyond the first.
    pub fn memory_request(&self, peak: MiB, requests: u32) -> MemoryRequest {
        let is_last = requests >= Self::REQUESTS;
        let later = f64::from(requests.min(Self::REQUESTS)) / f64::from(Self::REQUESTS);
        let share = self.first_memory + (1.0 - self.first_memory) * later;
        let of_peak = |share| peak.share(Fraction::clamped(share));
        // The last request is the peak to the MiB.
        let wanted = if is_last { peak } else { of_peak(share) };
        MemoryRequest { wanted, without_cache: of_peak(share * (1.0 - self.cached)).min(wanted), is_last }
    }

    /// Factor on step times on a server whose GPUs have this many busy processes.
    pub fn host_slowdown(&self, busy: usize, gpus: f64) -> f64 {
        1.0 + self.host_contention * (busy as f64 / gpus - 1.0).max(0.0)
    }

    /// Without randomness, and with all memory allocated at once: for schedules computed by hand.
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
            cached: 0.0,
            growth: (0.0, 0.0),
            reading: 1.0,
            host_contention: 0.0,
            telemetry: 0.0,
        }
    }
}
