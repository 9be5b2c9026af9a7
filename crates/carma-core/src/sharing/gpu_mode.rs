//! What a GPU can be switched to, and what that costs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SharingMode;
use crate::units::{MiB, Seconds};

/// What a GPU can be switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GpuMode {
    /// Time slices between plain processes.
    Streams,
    /// An MPS server.
    Mps,
    /// Instances of MIG.
    Mig(MigLayout),
}

impl GpuMode {
    /// The mode of sharing, with any MIG layout.
    pub const fn sharing(self) -> SharingMode {
        match self {
            Self::Streams => SharingMode::Streams,
            Self::Mps => SharingMode::Mps,
            Self::Mig(_) => SharingMode::Mig,
        }
    }

    /// How long a GPU is out of use when it is switched. MPS starts or stops a daemon; MIG resets the GPU and makes or destroys instances.
    pub const fn cost(from: SharingMode, to: SharingMode) -> Seconds {
        match (from, to) {
            (SharingMode::Mig, _) | (_, SharingMode::Mig) => Seconds::from_secs(20),
            _ => Seconds::from_secs(5),
        }
    }
}

impl fmt::Display for GpuMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Streams => f.write_str("streams"),
            Self::Mps => f.write_str("mps"),
            Self::Mig(layout) => write!(f, "mig {layout}"),
        }
    }
}

/// A way to cut a GPU with seven compute and eight memory slices, as A100 and H100 have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MigLayout {
    /// Four and three slices.
    #[serde(rename = "4g,3g")]
    FourThree,
    /// Three and three.
    #[serde(rename = "2x3g")]
    TwoThrees,
    /// Four, two and one.
    #[serde(rename = "4g,2g,1g")]
    FourTwoOne,
    /// Three of two, and one.
    #[serde(rename = "3x2g,1g")]
    ThreeTwos,
    /// Seven of one.
    #[serde(rename = "7x1g")]
    Sevenths,
}

impl MigLayout {
    /// All of them, those with the largest instances first.
    pub const ALL: [Self; 5] = [Self::FourThree, Self::TwoThrees, Self::FourTwoOne, Self::ThreeTwos, Self::Sevenths];

    /// The compute slices of each instance, the largest first.
    pub const fn slices(self) -> &'static [u8] {
        match self {
            Self::FourThree => &[4, 3],
            Self::TwoThrees => &[3, 3],
            Self::FourTwoOne => &[4, 2, 1],
            Self::ThreeTwos => &[2, 2, 2, 1],
            Self::Sevenths => &[1; 7],
        }
    }

    /// What each instance has of a GPU with this memory, the largest first.
    pub fn parts(self, whole: MiB) -> Vec<Part> {
        self.slices().iter().map(|slices| Part::of(*slices, whole)).collect()
    }
}

impl fmt::Display for MigLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, alike) in self.slices().chunk_by(|a, b| a == b).enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match alike {
                [one] => write!(f, "{one}g")?,
                many => write!(f, "{}x{}g", many.len(), many[0])?,
            }
        }
        Ok(())
    }
}

/// The share of a MIG instance in its GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// Compute slices, of seven.
    pub slices: u8,
    /// Its memory.
    pub memory: MiB,
}

impl Part {
    /// This many compute slices of a GPU with this memory. Memory goes with them in eighths.
    pub const fn of(slices: u8, whole: MiB) -> Self {
        let eighths = match slices {
            0..=2 => slices as u64,
            3 | 4 => 4,
            _ => 8,
        };
        Self { slices, memory: MiB(whole.0 * eighths / 8) }
    }

    /// An instance with this share of a GPU's memory; the smaller of the possible ones.
    pub fn with_memory(memory: MiB, whole: MiB) -> Self {
        let eighths = memory.0 * 8 / whole.0.max(1);
        // A part of each slice is the driver's, so instances have a little less than their eighths.
        let slices = match eighths {
            0 => 1,
            1 | 2 => 2,
            3 | 4 => 3,
            _ => 7,
        };
        Self { slices, memory }
    }

    /// Its share of the SMs.
    pub fn share(self) -> f64 {
        f64::from(self.slices) / 7.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_written_as_they_are_serialised_and_fit_a_gpu() {
        for layout in MigLayout::ALL {
            assert_eq!(serde_json::to_value(layout).unwrap(), layout.to_string());
            let parts = layout.parts(MiB(40_960));
            assert!(parts.iter().map(|part| part.slices).sum::<u8>() <= 7);
            assert!(parts.iter().map(|part| part.memory).sum::<MiB>() <= MiB(40_960));
            assert!(parts.is_sorted_by_key(|part| std::cmp::Reverse(part.slices)));
        }
    }

    #[test]
    fn instances_are_identified_by_their_memory() {
        for (memory, slices) in [(4_864, 1), (9_856, 2), (19_968, 3), (40_192, 7), (20_480, 3)] {
            assert_eq!(Part::with_memory(MiB(memory), MiB(40_960)).slices, slices, "{memory}");
        }
    }
}
