//! What is known of a GPU from monitoring: samples, a rolling window over them, and the window's statistics.
//!
//! `metric` (the table of metrics) ← `per_metric` ← `sample`, `statistics` ← `window`

mod metric;
mod per_metric;
mod sample;
mod statistics;
mod window;

pub use metric::{Metric, MetricFacts, Shown};
pub use per_metric::{PerMetric, Utilisation, UtilisationOverTime};
pub use sample::Sample;
pub use statistics::{Statistics, mean, percentile};
pub use window::{Window, WindowRule, WindowSummary};

use crate::units::MiB;

/// All that is known of a GPU from monitoring it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Telemetry {
    /// No sample has come yet.
    #[default]
    Silent,
    /// Samples come one by one, as from a driver.
    Sampled(Window),
    /// Finished windows come instead, as from a simulator; each is valid until the next.
    Summarised(Box<WindowSummary>),
}

impl Telemetry {
    /// Adds a sample. Returns whether its time differs from the last one's.
    pub fn sample(&mut self, sample: Sample, rule: WindowRule) -> bool {
        if let Self::Sampled(window) = self {
            let repeated = window.newest().is_some_and(|newest| newest.at == sample.at);
            window.push(sample);
            !repeated
        } else {
            let mut window = Window::new(rule);
            window.push(sample);
            *self = Self::Sampled(window);
            true
        }
    }

    /// Changes the rule; samples that fit it stay.
    pub fn set_rule(&mut self, rule: WindowRule) {
        if let Self::Sampled(window) = self {
            window.set_rule(rule);
        }
    }

    /// One metric's statistics over the window; `None` when it is mostly missing.
    pub fn statistics(&self, metric: Metric) -> Option<Statistics> {
        match self {
            Self::Silent => None,
            Self::Sampled(window) => window.statistics(metric),
            Self::Summarised(summary) => summary.statistics[metric],
        }
    }

    /// The power's statistics over the window, in watts; `None` when it is mostly missing.
    pub fn power(&self) -> Option<Statistics> {
        match self {
            Self::Silent => None,
            Self::Sampled(window) => window.power(),
            Self::Summarised(summary) => summary.power,
        }
    }

    /// The last reading of the device's used memory.
    pub fn memory_used(&self) -> Option<MiB> {
        match self {
            Self::Silent => None,
            Self::Sampled(window) => window.newest().map(|sample| sample.memory_used),
            Self::Summarised(summary) => Some(summary.memory_used),
        }
    }

    /// Whether a whole window has been seen.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Silent => false,
            Self::Sampled(window) => window.is_full(),
            Self::Summarised(summary) => summary.full,
        }
    }
}
