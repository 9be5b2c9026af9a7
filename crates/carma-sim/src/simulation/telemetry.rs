//! What the monitor sees of a device: a window over its counters, from how they stood and for how long.

use std::collections::VecDeque;

use carma_core::{MiB, Seconds, Statistics, Time, WindowRule, WindowSummary};

use super::chance::Chance;
use crate::catalogue::RankProfile;

/// How far above the middle the 95th percentile of noise lies, in standard deviations.
const P95: f64 = 1.645;
/// Counters, in the order of [`Levels`].
const COUNTERS: usize = 4;

/// SMACT, SMOCC, DRAMA and GPU utilisation of a device at one time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Levels(pub [f64; COUNTERS]);

impl Levels {
    /// Of ranks with how much they do of what they do alone. Time slices are shared out: what one rank does, it does less often beside
    /// others, and all of them together do no more than there is time for.
    pub fn of<'a>(ranks: impl Iterator<Item = (&'a RankProfile, f64)>, reading: f64) -> Self {
        let mut sums = [0.0; COUNTERS];
        for (profile, activity) in ranks {
            let counters = [profile.smact.get() * reading, profile.smocc.get() * reading, profile.drama.get(), profile.utilisation.get()];
            sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter * activity);
        }
        Self(sums.map(|sum| sum.min(1.0)))
    }
}

/// How a device's counters stood over the last window.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    /// Since when each level held, oldest first; the last holds now.
    history: VecDeque<(Time, Levels)>,
}

impl Monitor {
    /// The counters stand like this from now on.
    pub(super) fn change(&mut self, now: Time, levels: Levels, window: Seconds) {
        if self.history.back().is_some_and(|(_, standing)| *standing == levels) {
            return;
        }
        // A level that ended before the window began is of no more use.
        while self.history.get(1).is_some_and(|(until, _)| now - *until >= window) {
            self.history.pop_front();
        }
        if self.history.back().is_some_and(|(since, _)| *since == now) {
            self.history.pop_back();
        }
        self.history.push_back((now, levels));
    }

    /// When the window will show nothing but the present levels; unset: it does.
    pub(super) fn settles_at(&self, now: Time, window: Seconds) -> Option<Time> {
        self.history.back().map(|(since, _)| *since + window).filter(|settled| *settled > now)
    }

    /// The window that ends now, with noise of this size.
    pub(super) fn window(&self, now: Time, memory_used: MiB, rule: WindowRule, noise: f64, chance: &mut Chance) -> WindowSummary {
        let ends = self.history.iter().skip(1).map(|(since, _)| *since).chain([now]);
        let parts: Vec<(f64, Levels)> = self
            .history
            .iter()
            .zip(ends)
            .map(|((since, levels), until)| {
                let cut = (now - *since).get().min(rule.length.get()) - (now - until).get();
                (cut, *levels)
            })
            .filter(|(held, _)| *held > 0.0)
            .collect();
        let newest = self.history.back().map(|(_, levels)| *levels).unwrap_or_default();
        // A device that changed this very moment has not been seen since.
        let parts = if parts.is_empty() { vec![(1.0, newest)] } else { parts };
        // The mean of a window's samples is off by less than each of them.
        let shift = if noise > 0.0 { noise * chance.normal() / (rule.samples() as f64).sqrt() } else { 0.0 };
        let statistics = |counter: usize| Some(statistics(&parts, counter, rule, shift, noise));
        WindowSummary {
            full: true,
            memory_used,
            smact: statistics(0),
            smocc: statistics(1),
            drama: statistics(2),
            utilisation: statistics(3),
            ..WindowSummary::default()
        }
    }
}

/// One counter's statistics over parts of a window, with every sample off by `noise` and their mean by `shift`, as shares.
fn statistics(parts: &[(f64, Levels)], counter: usize, rule: WindowRule, shift: f64, noise: f64) -> Statistics {
    let level = |levels: &Levels| levels.0[counter];
    let blurred = |statistics: Statistics| {
        let off = |value: f64, by: f64| (value * (1.0 + by)).clamp(0.0, 1.0);
        Statistics {
            mean: off(statistics.mean, shift),
            median: off(statistics.median, shift),
            p95: off(statistics.p95, shift + P95 * noise),
            ema: off(statistics.ema, shift),
        }
    };
    if let [(_, only)] = parts {
        return blurred(Statistics::steady(level(only)));
    }
    let whole: f64 = parts.iter().map(|(held, _)| held).sum();
    let mean = parts.iter().map(|(held, levels)| held * level(levels)).sum::<f64>() / whole;
    let mut sorted: Vec<(f64, f64)> = parts.iter().map(|(held, levels)| (level(levels), *held)).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let quantile = |share: f64| {
        let mut below = 0.0;
        let reached = sorted.iter().find(|(_, held)| {
            below += held;
            below >= share * whole
        });
        reached.or(sorted.last()).map_or(0.0, |(value, _)| *value)
    };
    let keep = 1.0 - 2.0 / (rule.samples() as f64 + 1.0);
    let first = parts.first().map_or(0.0, |(_, levels)| level(levels));
    let ema = parts.iter().fold(first, |ema, (held, levels)| level(levels) + (ema - level(levels)) * keep.powf(held / rule.period.get()));
    blurred(Statistics { mean, median: quantile(0.5), p95: quantile(0.95), ema })
}
