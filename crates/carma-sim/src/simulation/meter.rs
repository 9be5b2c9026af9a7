//! Meter of a device over the whole run: totals, and optionally a timeline.

use carma_core::{MiB, Time};

use super::telemetry::Levels;

/// Totals of one device over a run; integrals over time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuTotals {
    /// Energy in joules.
    pub joules: f64,
    /// Time with at least one process.
    pub active: f64,
    /// SMACT times seconds.
    pub smact: f64,
    /// SMOCC times seconds.
    pub smocc: f64,
    /// DRAMA times seconds.
    pub drama: f64,
    /// MiB times seconds.
    pub memory: f64,
}

/// State of a device from some time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Start of the state.
    pub since: Time,
    /// SMACT.
    pub smact: f64,
    /// SMOCC.
    pub smocc: f64,
    /// DRAMA.
    pub drama: f64,
    /// Memory in use.
    pub memory: MiB,
    /// Power in watts.
    pub watts: f64,
    /// Number of processes, including foreign ones.
    pub processes: usize,
}

/// Accumulates the totals of a device.
#[derive(Debug)]
pub(super) struct Meter {
    now: Moment,
    pub(super) totals: GpuTotals,
    pub(super) moments: Option<Vec<Moment>>,
}

impl Meter {
    pub(super) fn new(since: Time, watts: f64, timeline: bool) -> Self {
        let now = Moment { since, smact: 0.0, smocc: 0.0, drama: 0.0, memory: MiB::ZERO, watts, processes: 0 };
        Self { now, totals: GpuTotals::default(), moments: timeline.then(|| vec![now]) }
    }

    /// Accumulates up to now.
    pub(super) fn advance(&mut self, now: Time) {
        let held = (now - self.now.since).get();
        let totals = &mut self.totals;
        totals.joules += held * self.now.watts;
        totals.active += if self.now.processes > 0 { held } else { 0.0 };
        totals.smact += held * self.now.smact;
        totals.smocc += held * self.now.smocc;
        totals.drama += held * self.now.drama;
        totals.memory += held * self.now.memory.0 as f64;
        self.now.since = now;
    }

    /// Sets the state from now on.
    pub(super) fn change(&mut self, now: Time, levels: Levels, memory: MiB, watts: f64, processes: usize) {
        self.advance(now);
        let [smact, smocc, drama, _] = levels.0;
        self.now = Moment { since: now, smact, smocc, drama, memory, watts, processes };
        if let Some(moments) = &mut self.moments {
            if moments.last().is_some_and(|last| last.since == now) {
                moments.pop();
            }
            moments.push(self.now);
        }
    }
}
