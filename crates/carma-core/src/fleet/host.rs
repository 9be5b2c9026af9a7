//! A server's host: what jobs have booked of its cores and memory, and what is really left.

use std::collections::BTreeMap;

use crate::AttemptId;
use crate::job::HostClaim;
use crate::units::MiB;

/// What is booked of a host, and the last reading of its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// What attempts have booked.
    pub booked: HostClaim,
    /// Memory that was available at the last reading.
    reading: Option<MiB>,
    /// Memory claimed by attempts launched since: it is not in that reading.
    launched: BTreeMap<AttemptId, MiB>,
}

impl Host {
    /// Memory that is available now; unset: never read.
    pub fn available(&self) -> Option<MiB> {
        Some(self.reading? - self.launched.values().copied().sum())
    }

    /// Notes a reading of what is available.
    pub(crate) fn set_available(&mut self, available: MiB) {
        self.launched.clear();
        self.reading = Some(available);
    }

    /// Books a claim, whether it fits or not: a running attempt has its resources already.
    pub(crate) fn book(&mut self, claim: HostClaim) {
        self.booked = self.booked.and(claim);
    }

    /// Expects a new attempt to take this much of the available memory.
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
