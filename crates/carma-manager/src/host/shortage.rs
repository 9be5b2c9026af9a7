//! When a host is short of a resource, and when it has recovered.

use std::path::PathBuf;

use carma_core::{Fraction, MiB, section};
use serde::Serialize;
use thiserror::Error;

use super::reading::HostReading;

section! {
    /// Resources that must be left on the host; otherwise no new job starts.
    LimitSettings => Limits {
        /// Minimum available memory of the host.
        memory: MiB [0.0..=1e12] = MiB(1024);
        /// Minimum free space on the disk of the manager's state.
        disk: MiB [0.0..=1e12] = MiB(1024);
        /// Maximum share of the last ten seconds in which all processes waited for memory.
        memory_pressure: Fraction = Fraction::clamped(0.2);
        // Builds and data loaders often keep all cores of a healthy host busy.
        /// Maximum share of the last ten seconds in which some process waited for a CPU. 1: no limit.
        cpu_pressure: Fraction = Fraction::ONE;
        /// Maximum load per core, on kernels that do not report pressure.
        load: f64 [0.0..=1e9] = 8.0;
    }
}

impl Limits {
    /// The limits for recovery: a little more, so that the state does not flap.
    fn relaxed(&self) -> Self {
        let more = |least: MiB| least + MiB(least.0 / 4);
        // 1 turns a limit off: a pressure never exceeds it.
        let less = |most: Fraction| if most == Fraction::ONE { most } else { Fraction::clamped(most.get() * 0.8) };
        Self {
            memory: more(self.memory),
            disk: more(self.disk),
            memory_pressure: less(self.memory_pressure),
            cpu_pressure: less(self.cpu_pressure),
            load: self.load * 0.8,
        }
    }
}

/// What a host is short of.
#[derive(Debug, Clone, PartialEq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// Memory.
    #[error("{available} of host memory is available, {compared}", compared = compared(*available, *least))]
    Memory {
        /// What is available.
        available: MiB,
        /// The limit.
        least: MiB,
    },
    /// Memory: the host thrashes.
    #[error("all processes wait for memory for {waits} of the time")]
    Thrashing {
        /// Share of time.
        waits: Fraction,
    },
    /// Space on a disk.
    #[error("{free} is free on the disk of {folder}, {compared}", folder = folder.display(), compared = compared(*free, *least))]
    Disk {
        /// A folder on the disk.
        folder: PathBuf,
        /// What is available.
        free: MiB,
        /// The limit.
        least: MiB,
    },
    /// CPU time, by the kernel's pressure.
    #[error("processes wait for a CPU for {waits} of the time")]
    Cpu {
        /// Share of time.
        waits: Fraction,
    },
    /// CPU time, by the load.
    #[error("the load is {load} on {cores} cores")]
    Load {
        /// The load.
        load: f64,
        /// Cores.
        cores: u32,
    },
}

/// A size against its limit. A host that recovers is above it.
fn compared(size: MiB, least: MiB) -> String {
    if size < least { format!("less than {least}") } else { format!("not yet a quarter more than the limit of {least}") }
}

impl Shortage {
    /// The same with the configured limits, not with those for recovery.
    fn with_limit(mut self, limits: &Limits) -> Self {
        match &mut self {
            Self::Memory { least, .. } => *least = limits.memory,
            Self::Disk { least, .. } => *least = limits.disk,
            Self::Thrashing { .. } | Self::Cpu { .. } | Self::Load { .. } => {}
        }
        self
    }
}

impl HostReading {
    /// What the host is short of, the most urgent first.
    pub fn shortage(&self, limits: &Limits) -> Option<Shortage> {
        let memory = || {
            let (available, least) = (self.memory_available, limits.memory);
            (available < least).then_some(Shortage::Memory { available, least })
        };
        let thrashing = || {
            let waits = self.memory_pressure?.full?;
            (waits > limits.memory_pressure).then_some(Shortage::Thrashing { waits })
        };
        let disk = || {
            let full = self.disks.iter().find(|disk| disk.free < limits.disk)?;
            Some(Shortage::Disk { folder: full.folder.clone(), free: full.free, least: limits.disk })
        };
        let cpu = || match self.cpu_pressure {
            Some(pressure) => (pressure.some > limits.cpu_pressure).then_some(Shortage::Cpu { waits: pressure.some }),
            None => (self.load > limits.load * f64::from(self.cores)).then_some(Shortage::Load { load: self.load, cores: self.cores }),
        };
        memory().or_else(thrashing).or_else(disk).or_else(cpu)
    }
}

/// Whether a host is short, over many readings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShortageTracker {
    shortage: Option<Shortage>,
}

/// A change of a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostChange {
    /// It is short of something.
    Short(Shortage),
    /// It is no longer short.
    Recovered,
}

impl ShortageTracker {
    /// What the host is short of, by the last reading.
    pub const fn shortage(&self) -> Option<&Shortage> {
        self.shortage.as_ref()
    }

    /// Takes a reading, and answers what changed. A host that was short has recovered when it has a little more than the limits.
    pub fn take(&mut self, reading: &HostReading, limits: &Limits) -> Option<HostChange> {
        let was_short = self.shortage.is_some();
        let recovering = || reading.shortage(&limits.relaxed()).filter(|_| was_short).map(|shortage| shortage.with_limit(limits));
        self.shortage = reading.shortage(limits).or_else(recovering);
        match (was_short, &self.shortage) {
            (false, Some(shortage)) => Some(HostChange::Short(shortage.clone())),
            (true, None) => Some(HostChange::Recovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proc::Pressure;
    use super::super::reading::Disk;
    use super::*;

    fn reading(available: u64) -> HostReading {
        HostReading {
            cores: 8,
            busy: None,
            load: 3.0,
            cpu_pressure: None,
            memory_total: MiB(64_000),
            memory_available: MiB(available),
            memory_pressure: None,
            swap_total: MiB(0),
            swap_free: MiB(0),
            disks: vec![Disk { folder: "/var/lib/carma".into(), total: MiB(100_000), free: MiB(50_000) }],
        }
    }

    #[test]
    fn a_shortage_does_not_flicker() {
        let limits = Limits { memory: MiB(1000), ..Limits::default() };
        let mut standing = ShortageTracker::default();
        let mut seen = |available| match standing.take(&reading(available), &limits) {
            None => "same",
            Some(HostChange::Short(_)) => "short",
            Some(HostChange::Recovered) => "fine",
        };
        assert_eq!([2000, 999, 1001, 990, 1249, 1250, 1001].map(&mut seen), ["same", "short", "same", "same", "same", "fine", "same"]);
    }

    #[test]
    fn a_host_that_recovers_names_the_configured_limit() {
        let limits = Limits { memory: MiB(4096), ..Limits::default() };
        let mut standing = ShortageTracker::default();
        let mut words = |available| {
            standing.take(&reading(available), &limits);
            standing.shortage().map(ToString::to_string)
        };
        assert_eq!(words(2048).unwrap(), "2.0 GiB of host memory is available, less than 4.0 GiB");
        assert_eq!(words(4608).unwrap(), "4.5 GiB of host memory is available, not yet a quarter more than the limit of 4.0 GiB");
        assert_eq!(words(6000), None);
    }

    #[test]
    fn a_disabled_limit_stays_disabled_while_the_host_recovers() {
        let limits = Limits { memory_pressure: Fraction::ONE, ..Limits::default() };
        let busy = Pressure { some: Fraction::clamped(0.99), full: Some(Fraction::clamped(0.99)) };
        let mut host = HostReading { cpu_pressure: Some(busy), memory_pressure: Some(busy), ..reading(32_000) };
        let mut standing = ShortageTracker::default();
        host.disks[0].free = MiB(7);
        assert!(matches!(standing.take(&host, &limits), Some(HostChange::Short(Shortage::Disk { .. }))));
        host.disks[0].free = MiB(50_000);
        assert_eq!(standing.take(&host, &limits), Some(HostChange::Recovered), "{:?}", standing.shortage());
    }

    #[test]
    fn the_text_names_the_scarce_resource() {
        let limits = Limits { cpu_pressure: Fraction::clamped(0.95), ..Limits::default() };
        let words = |change: fn(&mut HostReading)| {
            let mut reading = reading(32_000);
            change(&mut reading);
            reading.shortage(&limits).map(|shortage| shortage.to_string())
        };
        assert_eq!(words(|_| {}), None);
        let pressure = |some, full| Some(Pressure { some: Fraction::clamped(some), full: Some(Fraction::clamped(full)) });
        assert_eq!(words(|host| host.memory_available = MiB(3)).unwrap(), "3 MiB of host memory is available, less than 1.0 GiB");
        assert_eq!(words(|host| host.disks[0].free = MiB(7)).unwrap(), "7 MiB is free on the disk of /var/lib/carma, less than 1.0 GiB");
        assert_eq!(words(|host| host.load = 65.0).unwrap(), "the load is 65 on 8 cores");
        let mut waiting = reading(32_000);
        (waiting.cpu_pressure, waiting.load) = (pressure(0.5, 0.0), 100.0);
        assert_eq!(waiting.shortage(&limits), None, "pressure tells more than the load");
        waiting.cpu_pressure = pressure(0.99, 0.0);
        assert_eq!(waiting.shortage(&limits).unwrap().to_string(), "processes wait for a CPU for 0.99 of the time");
        waiting.memory_pressure = pressure(0.9, 0.5);
        assert_eq!(waiting.shortage(&limits).unwrap().to_string(), "all processes wait for memory for 0.50 of the time");
    }
}
