//! Cores and memory of the host that jobs said they need, kept for them while they run.

use std::collections::BTreeMap;

use carma_core::{AttemptId, MiB};
use thiserror::Error;

use super::reading::HostReading;
use crate::request::Resources;

/// Cores and memory of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Claim {
    /// Cores.
    pub cores: u32,
    /// Memory.
    pub memory: MiB,
}

/// What a job said it needs of the host; nothing where it said nothing.
impl From<&Resources> for Claim {
    fn from(resources: &Resources) -> Self {
        Self { cores: resources.cpus.unwrap_or(0), memory: resources.host_memory.unwrap_or_default() }
    }
}

/// Why a claim cannot be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Lacking {
    /// The host never has so many cores.
    #[error("it needs {needed} cores, and the host has {all}")]
    NeverCores {
        /// What it needs.
        needed: u32,
        /// What there is.
        all: u32,
    },
    /// The host never has so much memory.
    #[error("it needs {needed} of the host's memory, and the host has {all}")]
    NeverMemory {
        /// What it needs.
        needed: MiB,
        /// What there is.
        all: MiB,
    },
    /// Others have booked the cores.
    #[error("it needs {needed} cores, and of the host's {all} only {free} are not booked")]
    Cores {
        /// What it needs.
        needed: u32,
        /// What nobody booked.
        free: u32,
        /// What there is.
        all: u32,
    },
    /// Others have booked the memory.
    #[error("it needs {needed} of the host's memory, and of {all} only {free} are not booked")]
    Memory {
        /// What it needs.
        needed: MiB,
        /// What nobody booked.
        free: MiB,
        /// What there is.
        all: MiB,
    },
    /// Others use the memory, booked or not.
    #[error("it needs {needed} of the host's memory, and only {available} are available now")]
    MemoryInUse {
        /// What it needs.
        needed: MiB,
        /// What can be had.
        available: MiB,
    },
}

impl Lacking {
    /// Whether waiting could help.
    pub const fn may_pass(&self) -> bool {
        !matches!(self, Self::NeverCores { .. } | Self::NeverMemory { .. })
    }
}

/// What attempts have booked of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Booking {
    booked: BTreeMap<AttemptId, Claim>,
}

impl Booking {
    /// All that is booked.
    pub fn booked(&self) -> Claim {
        self.booked
            .values()
            .fold(Claim::default(), |sum, claim| Claim { cores: sum.cores.saturating_add(claim.cores), memory: sum.memory + claim.memory })
    }

    /// Whether a claim could be booked on a host that looks like this, or why not.
    pub fn fits(&self, claim: Claim, host: &HostReading) -> Result<(), Lacking> {
        let (booked, needed) = (self.booked(), claim);
        let (all_cores, all_memory, available) = (host.cores, host.memory_total, host.memory_available);
        let cores = all_cores.saturating_sub(booked.cores);
        let memory = all_memory - booked.memory;
        if needed.cores > all_cores {
            Err(Lacking::NeverCores { needed: needed.cores, all: all_cores })
        } else if needed.memory > all_memory {
            Err(Lacking::NeverMemory { needed: needed.memory, all: all_memory })
        } else if needed.cores > cores {
            Err(Lacking::Cores { needed: needed.cores, free: cores, all: all_cores })
        } else if needed.memory > memory {
            Err(Lacking::Memory { needed: needed.memory, free: memory, all: all_memory })
        } else if needed.memory > available {
            Err(Lacking::MemoryInUse { needed: needed.memory, available })
        } else {
            Ok(())
        }
    }

    /// Keeps this for an attempt, whether it fits or not: one that runs already has what it has.
    pub fn book(&mut self, attempt: AttemptId, claim: Claim) {
        if claim != Claim::default() {
            self.booked.insert(attempt, claim);
        }
    }

    /// The attempt has ended.
    pub fn release(&mut self, attempt: AttemptId) {
        self.booked.remove(&attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carma_core::JobId;

    #[test]
    fn a_claim_fits_or_says_why() {
        let host = HostReading {
            cores: 8,
            busy: None,
            load: 0.0,
            cpu_pressure: None,
            memory_total: MiB(1000),
            memory_available: MiB(500),
            memory_pressure: None,
            swap_total: MiB(0),
            swap_free: MiB(0),
            disks: Vec::new(),
        };
        let attempt = |job| AttemptId { job: JobId(job), number: 1 };
        let claim = |cores, memory| Claim { cores, memory: MiB(memory) };
        let mut booking = Booking::default();
        booking.book(attempt(1), claim(6, 300));
        booking.book(attempt(2), Claim::from(&Resources::default()));
        assert_eq!(booking.booked(), claim(6, 300));
        let why = |booking: &Booking, cores, memory| booking.fits(claim(cores, memory), &host).map_err(|lacking| lacking.to_string());
        assert_eq!(why(&booking, 2, 500), Ok(()));
        assert_eq!(why(&booking, 0, 0), Ok(()));
        assert_eq!(why(&booking, 3, 0).unwrap_err(), "it needs 3 cores, and of the host's 8 only 2 are not booked");
        assert_eq!(why(&booking, 9, 0).unwrap_err(), "it needs 9 cores, and the host has 8");
        assert_eq!(
            why(&booking, 1, 701).unwrap_err(),
            "it needs 701 MiB of the host's memory, and of 1000 MiB only 700 MiB are not booked"
        );
        assert_eq!(why(&booking, 1, 501).unwrap_err(), "it needs 501 MiB of the host's memory, and only 500 MiB are available now");
        assert!(!booking.fits(claim(1, 1001), &host).unwrap_err().may_pass());
        assert!(booking.fits(claim(3, 0), &host).unwrap_err().may_pass());
        booking.release(attempt(1));
        assert_eq!(why(&booking, 8, 500), Ok(()));
    }
}
