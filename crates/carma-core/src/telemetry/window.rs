//! A rolling window over a GPU's samples, by time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::per_metric::PerMetric;
use super::sample::Sample;
use super::statistics::Statistics;
use crate::units::{Fraction, MiB, Seconds, Time};

/// How long a window is and how often samples are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRule {
    /// How far back the window reaches.
    pub length: Seconds,
    /// Time between samples.
    pub period: Seconds,
}

impl WindowRule {
    /// Samples in a window without gaps.
    pub fn samples(self) -> usize {
        ((self.length.get() / self.period.get()).round() as usize).max(1)
    }

    /// Samples a window needs to count: half of them may be lost.
    fn enough(self) -> usize {
        self.samples().div_ceil(2)
    }

    /// The weight of a new value in the moving average.
    fn alpha(self) -> f64 {
        2.0 / (self.samples() as f64 + 1.0)
    }
}

/// The last samples of one GPU.
///
/// - A sample with the time of the newest replaces it.
/// - A sample older than the newest means that the clock was set back: the others cannot be placed on the new
///   clock, and the window begins again.
/// - A gap, or a clock set forward, lets the samples before it fall out by their age; the window is not full
///   again before it holds half of its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    rule: WindowRule,
    samples: VecDeque<Sample>,
    /// The values of each metric by size: every sample asks for percentiles, and sorting them each time would be most of its cost.
    sorted: Box<PerMetric<Vec<f64>>>,
    began: Time,
}

impl Window {
    /// An empty window.
    pub fn new(rule: WindowRule) -> Self {
        let samples = VecDeque::with_capacity(rule.samples() + 1);
        Self { rule, samples, sorted: Box::default(), began: Time::ZERO }
    }

    /// Adds a sample and drops those that are too old.
    pub fn push(&mut self, sample: Sample) {
        match self.newest().map(|newest| newest.at.cmp(&sample.at)) {
            Some(std::cmp::Ordering::Greater) => {
                self.samples.clear();
                *self.sorted = PerMetric::default();
            }
            Some(std::cmp::Ordering::Equal) => {
                let replaced = self.samples.pop_back();
                self.forget(replaced);
            }
            _ => {}
        }
        self.drop_older_than(sample.at);
        if self.samples.is_empty() {
            self.began = sample.at;
        }
        for (metric, values) in self.sorted.iter_mut() {
            if let Some(value) = sample.utilisation[metric].map(Fraction::get) {
                values.insert(place_of(values, value), value);
            }
        }
        self.samples.push_back(sample);
    }

    /// The values of a sample that is gone.
    fn forget(&mut self, gone: Option<Sample>) {
        let Some(gone) = gone else { return };
        for (metric, values) in self.sorted.iter_mut() {
            if let Some(value) = gone.utilisation[metric].map(Fraction::get) {
                values.remove(place_of(values, value));
            }
        }
    }

    fn drop_older_than(&mut self, newest: Time) {
        while self.samples.front().is_some_and(|oldest| newest - oldest.at >= self.rule.length) {
            let oldest = self.samples.pop_front();
            self.forget(oldest);
        }
    }

    /// Changes the rule. A longer window is full once samples have come for its whole length.
    pub fn set_rule(&mut self, rule: WindowRule) {
        let lengthened = rule.length > self.rule.length;
        self.rule = rule;
        if let Some(newest) = self.newest().map(|newest| newest.at) {
            self.drop_older_than(newest);
        }
        if let Some(oldest) = self.samples.front().filter(|_| lengthened) {
            self.began = oldest.at;
        }
    }

    /// The last sample.
    pub fn newest(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Whether samples have come for a whole window's time, and enough of them.
    pub fn is_full(&self) -> bool {
        self.newest().is_some_and(|newest| newest.at - self.began + self.rule.period >= self.rule.length)
            && self.samples.len() >= self.rule.enough()
    }

    /// One metric's statistics; `None` when fewer than half of the samples have it.
    pub fn statistics(&self, metric: Metric) -> Option<Statistics> {
        let sorted = &self.sorted[metric];
        let values = self.samples.iter().filter_map(|sample| sample.utilisation[metric].map(Fraction::get));
        if sorted.len() * 2 < self.samples.len() { None } else { Statistics::of_sorted(values, sorted, self.rule.alpha()) }
    }

    /// The statistics of the power in watts, likewise.
    pub fn power(&self) -> Option<Statistics> {
        let values: Vec<f64> = self.samples.iter().filter_map(|sample| sample.power.map(|power| power.0)).collect();
        if values.len() * 2 < self.samples.len() { None } else { Statistics::of(values, self.rule.alpha()) }
    }

    /// The window as one value; `None` while it is empty.
    pub fn summary(&self) -> Option<WindowSummary> {
        let newest = self.newest()?;
        Some(WindowSummary {
            full: self.is_full(),
            memory_used: newest.memory_used,
            statistics: PerMetric::from_fn(|metric| self.statistics(metric)),
            power: self.power(),
        })
    }
}

/// Where a value stands among these, the first of equals.
fn place_of(sorted: &[f64], value: f64) -> usize {
    sorted.partition_point(|other| other.total_cmp(&value).is_lt())
}

/// A finished window: what decisions need of it, without its samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Whether it covers a whole window's time.
    pub full: bool,
    /// The last reading of the device's used memory.
    pub memory_used: MiB,
    /// How busy the device was.
    #[serde(flatten)]
    pub statistics: PerMetric<Option<Statistics>>,
    /// Power in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Statistics>,
}

#[cfg(test)]
mod tests {
    use super::super::per_metric::Utilisation;
    use super::*;

    const RULE: WindowRule = WindowRule { length: Seconds::from_secs(30), period: Seconds::from_secs(1) };

    fn sample(second: f64, smact: f64) -> Sample {
        Sample { utilisation: Utilisation::of([(Metric::Smact, smact)]), ..Sample::new(Time::new(second).unwrap(), MiB(1000)) }
    }

    fn filled(seconds: impl IntoIterator<Item = u32>) -> Window {
        let mut window = Window::new(RULE);
        seconds.into_iter().for_each(|second| window.push(sample(f64::from(second), 0.5)));
        window
    }

    #[test]
    fn the_window_is_full_with_thirty_samples() {
        assert!(!filled(1..30).is_full());
        assert!(filled(1..31).is_full());
        assert_eq!(filled(1..100).samples.len(), 30);
    }

    #[test]
    fn a_slower_sampler_fills_the_window_if_half_of_the_samples_are_present() {
        assert!(filled((0..60).step_by(2)).is_full());
        assert!(!filled((0..90).step_by(3)).is_full());
    }

    #[test]
    fn a_duplicate_replaces_the_sample_of_its_time() {
        let mut window = filled(1..31);
        window.push(sample(30.0, 1.0));
        assert_eq!(window.samples.len(), 30);
        assert_eq!(window.newest(), Some(&sample(30.0, 1.0)));
    }

    #[test]
    fn a_clock_set_back_restarts_the_window() {
        let mut window = filled(1..31);
        window.push(sample(12.0, 0.5));
        assert_eq!((window.samples.len(), window.is_full()), (1, false));
    }

    #[test]
    fn a_gap_removes_samples_by_age() {
        let mut window = filled(1..31);
        window.push(sample(50.0, 0.5));
        assert_eq!((window.samples.len(), window.is_full()), (11, false), "10 s of the old window and the new sample");
        (51..=54).for_each(|second| window.push(sample(f64::from(second), 0.5)));
        assert!(!window.is_full(), "6 old and 5 new samples");
        (55..=100).for_each(|second| window.push(sample(f64::from(second), 0.5)));
        assert!(window.is_full());
        window.push(sample(4000.0, 0.5));
        assert_eq!((window.samples.len(), window.is_full()), (1, false), "a clock set forward by an hour");
    }

    #[test]
    fn a_metric_counts_when_half_of_the_samples_have_it() {
        let mut window = Window::new(RULE);
        for second in 0..10_u32 {
            let mut reading = sample(f64::from(second), 0.4);
            let busy = &mut reading.utilisation;
            busy[Metric::Drama] = (second % 2 == 0).then_some(Fraction::ONE);
            busy[Metric::Smocc] = (second % 3 == 0).then_some(Fraction::ONE);
            busy[Metric::Smact] = busy[Metric::Smact].filter(|_| second > 0);
            window.push(reading);
        }
        assert_eq!(window.statistics(Metric::Drama), Some(Statistics::steady(1.0)), "5 of 10");
        assert_eq!(window.statistics(Metric::Smocc), None, "4 of 10");
        assert!(window.statistics(Metric::Smact).is_some(), "a first tick without profiling counters does no harm");
        assert_eq!(window.statistics(Metric::Utilisation), None);
    }

    #[test]
    fn a_changed_rule_counts_at_once() {
        let long = WindowRule { length: Seconds::from_secs(90), ..RULE };
        let short = WindowRule { length: Seconds::from_secs(10), ..RULE };
        let mut window = filled(1..61);
        window.set_rule(short);
        assert_eq!((window.samples.len(), window.is_full()), (10, true));
        window.set_rule(long);
        assert!(!window.is_full(), "10 of 90 samples");
        (61..140).for_each(|second| window.push(sample(f64::from(second), 0.5)));
        assert!(!window.is_full(), "from 51 to 139 s");
        window.push(sample(140.0, 0.5));
        assert!(window.is_full());
    }

    #[test]
    fn statistics_are_those_of_the_values_that_are_left() {
        let mut window = Window::new(RULE);
        for (second, smact) in (0..100).map(|nth| (nth, f64::from(nth * 37 % 11) / 10.0)) {
            window.push(sample(f64::from(second), smact.min(1.0)));
            window.push(sample(f64::from(second), smact.min(0.8)));
            let values = window.samples.iter().filter_map(|sample| sample.utilisation[Metric::Smact].map(Fraction::get)).collect();
            assert_eq!(window.statistics(Metric::Smact), Statistics::of(values, RULE.alpha()));
        }
    }

    #[test]
    fn statistics_of_a_ramp() {
        let mut window = Window::new(RULE);
        (0..30).for_each(|second| window.push(sample(f64::from(second), f64::from(second) / 29.0)));
        let of = window.statistics(Metric::Smact).unwrap();
        assert!((of.mean - 0.5).abs() < 1e-12 && (of.median - 0.5).abs() < 1e-12);
        assert!((of.p95 - 27.55 / 29.0).abs() < 1e-12, "{of:?}");
        // The closed form of an average that starts at the first value and takes 2/31 of each new one.
        let keep: f64 = 29.0 / 31.0;
        let ema = (29.0 - keep / (1.0 - keep) * (1.0 - keep.powi(29))) / 29.0;
        assert!((of.ema - ema).abs() < 1e-12, "{} {ema}", of.ema);
    }
}
