//! How long a job still takes when alone, as far as it is known.

use carma_core::Seconds;
use carma_estimate::durations::{Expected, Length};

use super::tracks::Progress;

/// An unknown job: half of all jobs take less than an hour, and most between 10 minutes and 5 hours.
const UNKNOWN: (Seconds, f64) = (Seconds::from_secs(3600), 1.6);
/// Less certain lengths are no basis for a prediction: two of three within a factor of 2.2.
const MOST_SPREAD: f64 = 0.8;

/// What is known of the length of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    length: Length,
    /// The elapsed part of it.
    passed: Seconds,
    /// The share that a checkpoint holds.
    saved: f64,
    /// Its basis as text; unset: no usable basis.
    pub(super) basis: Option<String>,
}

impl Known {
    /// From earlier runs, and for a running job from its progress.
    pub(super) fn new(expected: Option<Expected>, progress: Option<Progress>, saved: f64) -> Self {
        let mut length = expected.map_or_else(|| Length::new(UNKNOWN.0, UNKNOWN.1), |expected| expected.length);
        let by_runs = expected.filter(|expected| expected.length.spread() <= MOST_SPREAD).map(|expected| expected.source());
        let by_progress = progress.and_then(|progress| progress.length);
        if let Some(seen) = by_progress {
            // Checkpointed work is not done again; earlier runs from the start do not show that.
            length = if saved > 0.0 { seen } else { length.with(seen) };
        }
        let shown = by_progress.filter(|seen| seen.spread() <= MOST_SPREAD).map(|_| "its progress".to_owned());
        let basis: Vec<String> = shown.into_iter().chain(by_runs).collect();
        let passed = progress.map_or(Seconds::ZERO, |progress| progress.alone);
        let saved = if by_progress.is_some() { 0.0 } else { saved };
        Self { length, passed, saved, basis: (!basis.is_empty()).then(|| basis.join(" and ")) }
    }

    /// With this probability it takes less from now on.
    pub(super) fn left(&self, probability: f64) -> Seconds {
        let whole = self.length.beyond(self.passed, probability);
        (whole - self.passed).times(1.0 - self.saved)
    }
}

#[cfg(test)]
mod tests {
    use carma_estimate::durations::Similarity;

    use super::*;

    fn seconds(count: u64) -> Seconds {
        Seconds::from_secs(count)
    }

    #[test]
    fn progress_and_earlier_runs_are_weighed() {
        let expected = |spread| Some(Expected { length: Length::new(seconds(1000), spread), likeness: Similarity::Command, runs: 2 });
        let progress = |length: Option<Length>| Some(Progress { alone: seconds(400), length });
        let left = |known: &Known| known.left(0.5).get().round();
        let unknown = Known::new(None, progress(None), 0.0);
        assert_eq!(unknown.basis, None);
        let runs = Known::new(expected(0.1), progress(None), 0.0);
        assert!((left(&runs) - 600.0).abs() < 1.0);
        assert_eq!(runs.basis.as_deref(), Some("2 earlier runs of this command"));
        let both = Known::new(expected(0.5), progress(Some(Length::new(seconds(800), 0.05))), 0.0);
        assert!((400.0..430.0).contains(&left(&both)), "{both:?}");
        assert_eq!(both.basis.as_deref(), Some("its progress and 2 earlier runs of this command"));
        let resumed = Known::new(expected(0.1), None, 0.25);
        assert!((left(&resumed) - 750.0).abs() < 1.0, "it goes on from a checkpoint");
        assert_eq!(Known::new(expected(1.2), None, 0.0).basis, None);
    }
}
