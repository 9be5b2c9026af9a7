//! Kinds of GPUs, by their data sheets.

use carma_core::{Fraction, MiB};

use crate::catalogue::RankProfile;

/// A kind of GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuType {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its total memory.
    pub memory: MiB,
    /// Its memory bandwidth in GB/s.
    pub bandwidth: f64,
    /// Idle power.
    pub idle_watts: f64,
    /// Maximum power.
    pub limit_watts: f64,
}

const fn gpu(name: &'static str, gibibytes: u64, bandwidth: f64, idle_watts: f64, limit_watts: f64) -> GpuType {
    GpuType { name, memory: MiB(gibibytes * 1024), bandwidth, idle_watts, limit_watts }
}

/// All known GPUs. Memory, bandwidth and power limits are from the data sheets. Idle power was measured for the A100 (50-55 W); for
/// others it is assumed to be the same share of the limit.
pub static GPU_TYPES: [GpuType; 13] = [
    gpu("A100-40GB", 40, 1555.0, 52.0, 400.0),
    gpu("A100-80GB", 80, 2039.0, 52.0, 400.0),
    gpu("H100-80GB", 80, 3350.0, 91.0, 700.0),
    gpu("V100-16GB", 16, 900.0, 39.0, 300.0),
    gpu("V100-32GB", 32, 900.0, 39.0, 300.0),
    gpu("P100-16GB", 16, 732.0, 39.0, 300.0),
    gpu("T4-16GB", 16, 320.0, 9.0, 70.0),
    gpu("A30-24GB", 24, 933.0, 21.0, 165.0),
    gpu("L40S-48GB", 48, 864.0, 46.0, 350.0),
    gpu("A6000-48GB", 48, 768.0, 39.0, 300.0),
    gpu("RTX-2080Ti-11GB", 11, 616.0, 33.0, 250.0),
    gpu("RTX-3090-24GB", 24, 936.0, 46.0, 350.0),
    gpu("RTX-4090-24GB", 24, 1008.0, 58.0, 450.0),
];

impl GpuType {
    /// Whether MIG can partition it into seven slices.
    pub fn has_seven_slices(&self) -> bool {
        self.name.starts_with("A100") || self.name.starts_with("H100")
    }

    /// The GPU that the catalogue was measured on.
    pub fn reference() -> &'static Self {
        &GPU_TYPES[0]
    }

    /// The kind of this name, ignoring case.
    pub fn find(name: &str) -> Option<&'static Self> {
        GPU_TYPES.iter().find(|kind| kind.name.eq_ignore_ascii_case(name))
    }

    /// Memory reserved by the driver: 424 of an A100's 40960 MiB, and the same share on other GPUs.
    pub fn reserved(&self) -> MiB {
        MiB(self.memory.0 * 424 / 40_960)
    }

    /// Factor on a rank's step time relative to the GPU it was measured on, and its counters here. Assumes that kernel time scales with
    /// memory bandwidth and CPU time stays the same. This is an assumption, not a measurement: calibrate where it matters.
    pub fn stretch(&self, rank: &RankProfile) -> (f64, RankProfile) {
        let kernels = rank.utilisation.get() * Self::reference().bandwidth / self.bandwidth;
        let time = 1.0 - rank.utilisation.get() + kernels;
        let busier = if rank.utilisation == Fraction::ZERO { 1.0 } else { kernels / time / rank.utilisation.get() };
        let counter = |value: Fraction| Fraction::clamped(value.get() * busier);
        let here = RankProfile {
            smact: counter(rank.smact),
            smocc: counter(rank.smocc),
            drama: counter(rank.drama),
            utilisation: counter(rank.utilisation),
            power: rank.power.filter(|_| self == Self::reference()),
            ..*rank
        };
        (time, here)
    }

    /// The inverse of [`GpuType::stretch`], from the counters of a rank measured here: factor on its step time relative to the reference,
    /// and its counters there.
    ///
    /// ```
    /// use carma_sim::{Catalogue, GpuType};
    /// let rank = Catalogue::shipped().iter().next().unwrap().1.ranks[0];
    /// let kind = GpuType::find("V100-32GB").unwrap();
    /// let (time, here) = kind.stretch(&rank);
    /// let (same_time, there) = kind.unstretch(&here);
    /// assert!((time - same_time).abs() < 1e-9 && (there.utilisation.get() - rank.utilisation.get()).abs() < 1e-9);
    /// ```
    pub fn unstretch(&self, here: &RankProfile) -> (f64, RankProfile) {
        let slower = Self::reference().bandwidth / self.bandwidth;
        let busy = here.utilisation.get();
        let there = busy / (slower - busy * (slower - 1.0));
        let time = 1.0 - there + there * slower;
        let counter = |value: Fraction| Fraction::clamped(value.get() * time / slower);
        let rank = RankProfile {
            smact: counter(here.smact),
            smocc: counter(here.smocc),
            drama: counter(here.drama),
            utilisation: Fraction::clamped(there),
            power: None,
            ..*here
        };
        (time, rank)
    }
}
