//! `[admission]` and `[gate]`: which jobs may share a GPU, and when the next one may come.

use crate::keys::ZeroIsNone;
use crate::units::{Fraction, MiB, Seconds, Time};
use crate::{choice, section};

section! {
    /// Which jobs may share a GPU.
    AdmissionSettings => #[derive(Copy, Eq)] AdmissionConfig {
        /// Free memory required beyond the declared or estimated need of a job.
        margin: MiB [0.0..=MOST_MEMORY] = MiB(2048), Aegis: MiB(512), Standard: MiB(1024), Carma: MiB(512);
        /// More of it, beyond an estimate whose upper bound is more than 1.4 times the expected peak.
        doubt_margin: MiB [0.0..=MOST_MEMORY] = MiB::ZERO, Carma: MiB(2560), Response: MiB::ZERO;
        /// Memory of each GPU that is never given to jobs.
        guard: MiB [0.0..=MOST_MEMORY] = MiB(512);
        /// The same as a share of the GPU's memory. The larger of the two counts.
        guard_share: Fraction = Fraction::ZERO, Aegis: Fraction::clamped(0.01);
        /// Free memory required for a job about which nothing is known. Policy `rr` requires it only with reservations.
        floor: MiB [0.0..=MOST_MEMORY] = MiB(5120);
        /// A GPU without jobs is idle if no more than this is in use.
        idle_memory: MiB [0.0..=MOST_MEMORY] = MiB(1024);
        /// Maximum number of jobs on one GPU. 0: no limit.
        jobs_per_gpu: ZeroIsNone<u32> [0.0..=1000.0] = None;
        /// A GPU with more SM activity or utilisation than this is not shared further. 1: no cap.
        utilisation_cap: Fraction = Fraction::ONE;
        /// Memory reserved for a job counts as used before the job allocates it.
        reservations: bool = false, Standard: true;
        /// Reserved memory that a job does not use is given back once its memory has not risen for this long. 0: never.
        trim_after: ZeroIsNone<Seconds> [0.0..=604_800.0] = None, Carma: Some(Seconds::from_secs(300)), Response: None;
        /// Idle GPUs are used before any GPU is shared.
        idle_first: bool = true;
        /// GPUs that processes outside CARMA use: share them, or leave them alone.
        foreign: Foreign = Foreign::Share;
    }
}

section! {
    /// The observation gate: after a job joins a GPU, the next one waits until the first has been observed.
    GateSettings => #[derive(Copy, Eq)] GateConfig {
        /// The next job may join a GPU after the last one has been observed for longer than this.
        observe: Seconds [0.0..=3600.0] = Seconds::from_secs(30);
        /// The same for a job that uses about as much memory as reserved, on a GPU no busier than predicted.
        confirmed: Seconds [0.0..=3600.0] = Seconds::from_secs(30), Carma: Seconds::from_secs(20);
        // Twice the longest published delay from launch to first GPU activity.
        /// The gate opens this long after a launch even if the job never appeared on the GPU. 0: never.
        timeout ("patience"): ZeroIsNone<Seconds> [0.0..=86_400.0] = None, Standard: Some(Seconds::from_secs(120));
    }
}

/// More memory than any GPU has.
const MOST_MEMORY: f64 = 1_048_576.0;

choice! {
    /// GPUs that processes outside CARMA use.
    Foreign {
        /// Share them; their memory and load count like any other.
        Share = "share",
        /// Leave them alone.
        Avoid = "avoid",
    }
}

impl AdmissionConfig {
    /// Memory that is never given to jobs, of a GPU with this much.
    pub fn guard_of(&self, memory: MiB) -> MiB {
        self.guard.max(memory.share(self.guard_share))
    }
}

impl GateConfig {
    /// When the gate behind a launched job opens; `None`: not before the job is observed.
    pub(crate) fn opens_after(&self, launched_at: Time, seen_at: Option<Time>) -> Option<Time> {
        let observed = seen_at.map(|seen| seen + self.observe + Seconds::TICK);
        observed.or_else(|| self.timeout.map(|timeout| launched_at + timeout))
    }
}
