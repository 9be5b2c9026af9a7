//! What a job claims of a host.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::MiB;

/// Cores and memory of a host: what a job claims, what is booked, what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HostClaim {
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: MiB,
}

impl HostClaim {
    /// More than any job claims: the resources of a host that are not counted.
    pub(crate) const UNLIMITED: Self = Self { cores: u32::MAX, memory: MiB(u64::MAX) };

    /// Whether nothing is claimed.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn fits_in(self, room: Self) -> bool {
        self.cores <= room.cores && self.memory <= room.memory
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { cores: self.cores.saturating_add(other.cores), memory: self.memory + other.memory }
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self { cores: self.cores.saturating_sub(other.cores), memory: self.memory - other.memory }
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { cores: self.cores.max(other.cores), memory: self.memory.max(other.memory) }
    }
}

impl fmt::Display for HostClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cores, self.memory) {
            (cores, MiB::ZERO) => write!(f, "{cores} cores"),
            (0, memory) => write!(f, "{memory}"),
            (cores, memory) => write!(f, "{cores} cores and {memory}"),
        }
    }
}
