//! How processes share GPUs: time slices, MPS, or instances of MIG.

use std::fmt;
use std::str::FromStr;

use carma_core::{CollocationMode, Fraction, MiB};

/// How processes share the GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// Time slices between plain processes.
    #[default]
    Streams,
    /// An MPS server on each GPU.
    Mps,
    /// Each GPU partitioned into MIG instances of this many of its 7 slices.
    Mig(u8),
}

impl Sharing {
    /// The core's name for it.
    pub const fn mode(self) -> CollocationMode {
        match self {
            Self::Streams => CollocationMode::Streams,
            Self::Mps => CollocationMode::Mps { exclusive_process: false },
            Self::Mig(_) => CollocationMode::Mig,
        }
    }

    /// Number of devices per GPU, and the share of the GPU that each has.
    pub(crate) fn devices(self) -> (u16, Fraction) {
        match self {
            Self::Streams | Self::Mps => (1, Fraction::ONE),
            Self::Mig(slices) => (u16::from(7 / slices), Fraction::clamped(f64::from(slices) / 7.0)),
        }
    }

    /// Memory of each device of a GPU with this much memory: instances have eighths.
    pub(crate) fn memory(self, whole: MiB) -> MiB {
        match self {
            Self::Mig(1) => MiB(whole.0 / 8),
            Self::Mig(2) => MiB(whole.0 / 4),
            Self::Mig(3 | 4) => MiB(whole.0 / 2),
            Self::Streams | Self::Mps | Self::Mig(_) => whole,
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams => f.write_str("streams"),
            Self::Mps => f.write_str("mps"),
            Self::Mig(slices) => write!(f, "mig-{slices}g"),
        }
    }
}

impl FromStr for Sharing {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Streams, Self::Mps].into_iter().chain([1, 2, 3, 4, 7].map(Self::Mig));
        let unknown = || format!("{name:?} is not a sharing mode: give streams, mps, mig-1g, mig-2g, mig-3g, mig-4g or mig-7g");
        all.into_iter().find(|sharing| sharing.to_string() == name).ok_or_else(unknown)
    }
}
