//! Parsing of `/proc`, for old and new kernels.

use carma_core::{Fraction, MiB};
use serde::{Deserialize, Serialize};

/// Share of the last ten seconds that was spent waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Something waited.
    pub some: Fraction,
    /// Everything waited; older kernels do not report this for CPUs.
    pub full: Option<Fraction>,
}

/// Memory from `/proc/meminfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub total: MiB,
    pub available: MiB,
    pub swap_total: MiB,
    pub swap_free: MiB,
}

/// Ticks since boot, of all CPUs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTimes {
    busy: u64,
    total: u64,
}

impl CpuTimes {
    /// The share of time since then that CPUs were busy.
    pub(super) fn busy_since(self, before: Self) -> Option<Fraction> {
        let passed = self.total.checked_sub(before.total).filter(|passed| *passed > 0)?;
        Some(Fraction::clamped(self.busy.saturating_sub(before.busy) as f64 / passed as f64))
    }
}

/// Reads `/proc/meminfo`.
pub(super) fn memory(meminfo: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| MiB(kib >> 10))
    };
    let or_none = |name| field(name).unwrap_or_default();
    // Before 3.14 there is no MemAvailable. Shared memory counts as cached but cannot be reclaimed.
    let estimated = || Some(field("MemFree")? + or_none("Buffers") + or_none("Cached") - or_none("Shmem"));
    Some(Memory {
        total: field("MemTotal")?,
        available: field("MemAvailable").or_else(estimated)?,
        swap_total: or_none("SwapTotal"),
        swap_free: or_none("SwapFree"),
    })
}

/// Reads a file of `/proc/pressure`.
pub(super) fn pressure(text: &str) -> Option<Pressure> {
    let line = |name: &str| {
        let fields = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let percent: f64 = fields.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()?;
        Some(Fraction::clamped(percent / 100.0))
    };
    Some(Pressure { some: line("some")?, full: line("full") })
}

/// The load of the last minute, from `/proc/loadavg`.
pub(super) fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0)
}

/// The first line of `/proc/stat`.
pub(super) fn cpu_times(stat: &str) -> Option<CpuTimes> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // Guest time comes last, and is part of the first two.
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
    let total = ticks.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
    // Idle and iowait, which very old kernels do not tell apart.
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    Some(CpuTimes { busy: total.saturating_sub(idle), total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_kernels_old_and_new() {
        let new = "MemTotal:       131896540 kB\nMemFree:         1024000 kB\nMemAvailable:   98304000 kB\nBuffers:          100 kB\nCached:         9000 kB\nSwapCached:            0 kB\nSwapTotal:       8388604 kB\nSwapFree:        4194304 kB\n";
        let read = Memory { total: MiB(128_805), available: MiB(96_000), swap_total: MiB(8191), swap_free: MiB(4096) };
        assert_eq!(memory(new), Some(read));
        let of_2_6 = "MemTotal:      2048000 kB\nMemFree:        512000 kB\nBuffers:        102400 kB\nCached:        1024000 kB\nShmem:         204800 kB\n";
        assert_eq!(memory(of_2_6).unwrap().available, MiB(500 + 100 + 1000 - 200));
        assert_eq!(memory("MemTotal: lots\n"), None);
    }

    #[test]
    fn pressure_with_and_without_full() {
        let both = "some avg10=28.05 avg60=18.22 avg300=19.69 total=7514114666\nfull avg10=1.50 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(both), Some(Pressure { some: Fraction::clamped(0.2805), full: Some(Fraction::clamped(0.015)) }));
        assert_eq!(pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n").unwrap().full, None);
        assert_eq!(pressure(""), None);
    }

    #[test]
    fn cpus_are_busy_unless_idle_or_waiting() {
        let before = cpu_times("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n").unwrap();
        let after = cpu_times("cpu  160 0 120 900 20 0 0 0 60 0\n").unwrap();
        assert_eq!(after.busy_since(before), Some(Fraction::clamped(0.4)));
        assert_eq!(before.busy_since(before), None);
        assert_eq!(before.busy_since(after), None, "a counter that went back says nothing");
        assert_eq!(cpu_times("cpu  1 2\n"), None);
        assert_eq!(load("4.68 2.79 3.28 2/311 6006\n"), Some(4.68));
        assert_eq!(load("nan"), None);
    }
}
