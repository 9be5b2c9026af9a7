//! What the monitor saw of a GPU: samples, a rolling window over them, and the window's statistics.

mod sample;
mod statistics;
mod window;

pub use sample::{Metric, Sample};
pub use statistics::Statistics;
pub use window::{Window, WindowRule, WindowSummary};

use crate::units::MiB;

/// All that is known of a GPU from watching it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Telemetry {
    /// Nothing has been heard yet.
    #[default]
    Silent,
    /// Samples come one by one, as from a driver.
    Sampled(Window),
    /// Finished windows come instead, as from a simulator; one stands until the next.
    Summarised(Box<WindowSummary>),
}

impl Telemetry {
    /// Takes in a sample. Returns whether it is another one than the last.
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

    /// Goes by another rule from now on; what was sampled stays as far as it fits.
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
            Self::Summarised(summary) => summary.statistics(metric),
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
