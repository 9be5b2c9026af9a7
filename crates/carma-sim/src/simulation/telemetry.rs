//! The monitor's view of a device: a window over its counters, from their levels and how long each held.

use std::collections::VecDeque;

use carma_core::{Metric, MiB, PerMetric, Seconds, Statistics, Time, WindowRule, WindowSummary};

use super::chance::Chance;
use crate::catalogue::RankProfile;

/// Distance of the 95th percentile of noise from the mean, in standard deviations.
const P95: f64 = 1.645;

/// The modelled metrics of a device at one time, in the order of [`Levels::METRICS`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Levels(pub [f64; Levels::METRICS.len()]);

impl Levels {
    /// The modelled metrics.
    pub const METRICS: [Metric; 4] = [Metric::Smact, Metric::Smocc, Metric::Drama, Metric::Utilisation];

    /// Index of a metric in the levels; unset if it is not modelled.
    pub fn place(metric: Metric) -> Option<usize> {
        Self::METRICS.into_iter().position(|modelled| modelled == metric)
    }

    /// Levels of ranks with their activity relative to running alone. Time slices are shared: each rank runs less often beside others, and
    /// all together use at most the whole time.
    pub fn of<'a>(ranks: impl Iterator<Item = (&'a RankProfile, f64)>, reading: f64) -> Self {
        let mut sums = [0.0; Self::METRICS.len()];
        for (profile, activity) in ranks {
            let counters = [profile.smact.get() * reading, profile.smocc.get() * reading, profile.drama.get(), profile.utilisation.get()];
            sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter * activity);
        }
        Self(sums.map(|sum| sum.min(1.0)))
    }
}

/// Counters of a device over the last window.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// Start of each level, oldest first; the last one is current.
    history: VecDeque<(Time, Levels)>,
}

impl Monitor {
    /// Sets the counters from now on.
    pub(super) fn change(&mut self, now: Time, levels: Levels, window: Seconds) {
        if self.history.back().is_some_and(|(_, current)| *current == levels) {
            return;
        }
        // A level that ended before the window began is no longer needed.
        while self.history.get(1).is_some_and(|(until, _)| now - *until >= window) {
            self.history.pop_front();
        }
        if self.history.back().is_some_and(|(since, _)| *since == now) {
            self.history.pop_back();
        }
        self.history.push_back((now, levels));
    }

    /// When the window will contain only the current levels; unset: it already does.
    pub(super) fn settles_at(&self, now: Time, window: Seconds) -> Option<Time> {
        self.history.back().map(|(since, _)| *since + window).filter(|settled| *settled > now)
    }

    /// The window that ends now, with noise of this standard deviation.
    pub(super) fn window(&self, now: Time, memory_used: MiB, rule: WindowRule, noise: f64, chance: &mut Chance) -> WindowSummary {
        let newest = self.history.back().map(|(_, levels)| *levels).unwrap_or_default();
        let mut parts = self.parts(now, rule);
        // A device that changed at this moment has no sample since.
        if parts.is_empty() {
            parts.push(Part { held: 1.0, levels: newest, keep: 1.0 });
        }
        // The mean of a window has less noise than a single sample.
        let shift = if noise > 0.0 { noise * chance.normal() / (rule.samples() as f64).sqrt() } else { 0.0 };
        let mut sorted = Vec::with_capacity(parts.len());
        let mut statistics = PerMetric::NONE;
        for (counter, metric) in Levels::METRICS.into_iter().enumerate() {
            statistics[metric] = Some(blurred(part_statistics(&parts, counter, &mut sorted), shift, noise));
        }
        WindowSummary { full: true, memory_used, statistics, power: None }
    }

    /// The levels in the window that ends now.
    fn parts(&self, now: Time, rule: WindowRule) -> Vec<Part> {
        let ends = self.history.iter().skip(1).map(|(since, _)| *since).chain([now]);
        let held = |since: Time, until: Time| (now - since).get().min(rule.length.get()) - (now - until).get();
        let parts =
            self.history.iter().zip(ends).map(|((since, levels), until)| Part { held: held(*since, until), levels: *levels, keep: 1.0 });
        let mut parts: Vec<Part> = parts.filter(|part| part.held > 0.0).collect();
        let keep = 1.0 - 2.0 / (rule.samples() as f64 + 1.0);
        // Nothing comes before the first.
        for part in parts.iter_mut().skip(1) {
            part.keep = keep.powf(part.held / rule.period.get());
        }
        parts
    }
}

/// Levels that held for a part of a window.
#[derive(Debug)]
struct Part {
    held: f64,
    levels: Levels,
    /// How much of a moving average is left after it.
    keep: f64,
}

/// Statistics as measured: `noise` is the relative error of each sample, `shift` that of their mean.
fn blurred(exact: Statistics, shift: f64, noise: f64) -> Statistics {
    let off = |value: f64, by: f64| (value * (1.0 + by)).clamp(0.0, 1.0);
    Statistics {
        mean: off(exact.mean, shift),
        median: off(exact.median, shift),
        p95: off(exact.p95, shift + P95 * noise),
        ema: off(exact.ema, shift),
    }
}

/// Statistics of one counter over the parts of a window. `sorted` is a buffer.
fn part_statistics(parts: &[Part], counter: usize, sorted: &mut Vec<(f64, f64)>) -> Statistics {
    let level = |part: &Part| part.levels.0[counter];
    if let [only] = parts {
        return Statistics::steady(level(only));
    }
    let whole: f64 = parts.iter().map(|part| part.held).sum();
    let mean = parts.iter().map(|part| part.held * level(part)).sum::<f64>() / whole;
    sorted.clear();
    sorted.extend(parts.iter().map(|part| (level(part), part.held)));
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let quantile = |share: f64| {
        let mut below = 0.0;
        let reached = sorted.iter().find(|(_, held)| {
            below += held;
            below >= share * whole
        });
        reached.or(sorted.last()).map_or(0.0, |(value, _)| *value)
    };
    let first = parts.first().map_or(0.0, level);
    let ema = parts.iter().fold(first, |ema, part| level(part) + (ema - level(part)) * part.keep);
    Statistics { mean, median: quantile(0.5), p95: quantile(0.95), ema }
}
