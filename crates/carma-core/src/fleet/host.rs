//! A server's host: what jobs have booked of its cores and memory, and what is really left.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::AttemptId;
use crate::units::MiB;

/// Cores and memory of a host: what a job said it needs, what is booked, what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostClaim {
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: MiB,
}

impl HostClaim {
    /// More than anybody claims: what a host has of which nothing is counted.
    pub(crate) const UNCOUNTED: Self = Self { cores: u32::MAX, memory: MiB(u64::MAX) };

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

/// What is booked of a host, and what was last heard of its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// What attempts have booked.
    pub booked: HostClaim,
    /// Memory that was available when last heard of, whoever uses the rest.
    heard: Option<MiB>,
    /// Memory claimed by attempts launched since: they have not taken it yet, or nobody has looked.
    launched: BTreeMap<AttemptId, MiB>,
}

impl Host {
    /// Memory that can really be had; unset: nobody has said.
    pub fn available(&self) -> Option<MiB> {
        Some(self.heard? - self.launched.values().copied().sum())
    }

    /// Notes what is available now, all attempts counted.
    pub(crate) fn hear(&mut self, available: MiB) {
        self.launched.clear();
        self.heard = Some(available);
    }

    /// Keeps this for an attempt, whether it fits or not: one that runs already has what it has.
    pub(crate) fn book(&mut self, claim: HostClaim) {
        self.booked = self.booked.and(claim);
    }

    /// Counts on a newcomer taking this much of the available memory.
    pub(crate) fn expect(&mut self, attempt: AttemptId, memory: MiB) {
        if memory > MiB::ZERO {
            self.launched.insert(attempt, memory);
        }
    }

    /// The attempt has ended.
    pub(crate) fn release(&mut self, attempt: AttemptId, claim: HostClaim) {
        self.booked = self.booked.without(claim);
        self.launched.remove(&attempt);
    }
}
