//! Who has a lease, where, and for how long.

use std::fmt;
use std::fs;
use std::io;
use std::time::Duration;

/// The host on which a manager runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostIdentity {
    /// Its name.
    pub host: String,
    /// What the kernel calls this boot.
    pub boot: String,
}

impl HostIdentity {
    /// This host.
    pub fn of_this_host() -> io::Result<Self> {
        let read = |file| fs::read_to_string(file).map(|text| text.trim().to_owned());
        Ok(Self { host: read("/proc/sys/kernel/hostname")?, boot: read("/proc/sys/kernel/random/boot_id")? })
    }
}

/// How often a lease is renewed, and when it has run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTiming {
    /// The longest time between two renewals.
    pub renewal: Duration,
    /// The time without a renewal after which another host may take over.
    pub expiry: Duration,
}

impl LeaseTiming {
    /// Less than the ten seconds that are promised, because a commit takes time. Six renewals may fail before another host takes over.
    pub const DEFAULT: Self = Self { renewal: Duration::from_secs(8), expiry: Duration::from_secs(60) };

    /// A lease that runs out after this time, for tests.
    pub const fn expiring_after(expiry: Duration) -> Self {
        Self { renewal: Duration::from_nanos(expiry.as_nanos() as u64 / 8), expiry }
    }
}

/// The manager that has a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The name of its host.
    pub host: String,
    /// Its process number there.
    pub pid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the manager on {} with process number {}", self.host, self.pid)
    }
}
