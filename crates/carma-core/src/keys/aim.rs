//! What our own preset aims at, and where the values of a key come from.

use super::Preset;
use crate::choice;

choice! {
    /// What policy `carma` aims at.
    #[derive(Default)]
    Aim {
        /// Short makespan, short completion times and low energy together.
        #[default]
        Balanced = "balanced",
        /// Makespan and energy first: GPUs are shared further and kept longer for the longest job.
        Throughput = "throughput",
        /// Mean completion time and little slowdown first: GPUs are shared only where that clearly pays.
        Response = "response",
    }
}

impl Aim {
    /// Every aim.
    pub const ALL: [Self; 3] = [Self::Balanced, Self::Throughput, Self::Response];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Throughput => "throughput",
            Self::Response => "response",
        }
    }
}

/// A set of values that keys start from: a preset, or an aim of our own preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Our own preset, balanced.
    Carma,
    /// Our own preset for throughput.
    Throughput,
    /// Our own preset for response.
    Response,
    /// Preset `standard`.
    Standard,
    /// Preset `first`.
    First,
    /// Preset `paper`.
    Paper,
    /// Preset `aegis`.
    Aegis,
}

/// Makes the value of a key.
type Make<T> = fn() -> T;

impl Base {
    /// The values of a preset. Only our own has other values for other aims.
    pub const fn of(preset: Preset, aim: Aim) -> Self {
        match (preset, aim) {
            (Preset::Carma, Aim::Balanced) => Self::Carma,
            (Preset::Carma, Aim::Throughput) => Self::Throughput,
            (Preset::Carma, Aim::Response) => Self::Response,
            (Preset::Standard, _) => Self::Standard,
            (Preset::First, _) => Self::First,
            (Preset::Paper, _) => Self::Paper,
            (Preset::Aegis, _) => Self::Aegis,
        }
    }

    /// The values that these change.
    const fn parent(self) -> Option<Self> {
        match self {
            Self::Paper => None,
            Self::First | Self::Aegis | Self::Standard => Some(Self::Paper),
            Self::Carma => Some(Self::Standard),
            Self::Throughput | Self::Response => Some(Self::Carma),
        }
    }

    /// The value of a key: its own here, else that of the values these change, else the published one.
    pub fn value<T>(self, own: &[(Self, Make<T>)], published: Make<T>) -> T {
        let mut lineage = std::iter::successors(Some(self), |base| base.parent());
        let found = lineage.find_map(|base| own.iter().find(|(named, _)| *named == base));
        found.map_or(published, |(_, value)| *value)()
    }
}

impl From<Preset> for Base {
    fn from(preset: Preset) -> Self {
        Self::of(preset, Aim::default())
    }
}
