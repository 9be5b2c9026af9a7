//! Intervals of time from several runs ahead.

use carma_core::{Seconds, Time, percentile};

/// The share that the shown interval excludes at each end.
const TAIL: f64 = 0.04;
/// Uncertainty that simulated runs do not contain: the interval is wider by this share, and by at least these seconds.
const WIDENING: (f64, f64) = (0.12, 20.0);
/// An interval is shown if its end is at most this many times as far away as its beginning, with these seconds added to both.
const MOST_RATIO: (f64, f64) = (8.0, 120.0);

/// When something is predicted to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) earliest: Time,
    pub(crate) likely: Time,
    pub(crate) latest: Time,
}

/// What is predicted of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JobPrediction {
    pub(crate) starts: Option<Range>,
    pub(crate) ends: Option<Range>,
    /// What its length is based on, for people.
    pub(crate) basis: Option<String>,
}

impl Range {
    /// From when it happened in each run; unset in a run: not within the simulated time. It cannot happen before `fixed`, if that is set. None if the
    /// runs say too little.
    pub(super) fn of(runs: &[Option<Time>], fixed: Option<Time>, now: Time) -> Option<Self> {
        let mut waits: Vec<f64> = runs.iter().map(|time| time.map_or(f64::INFINITY, |time| (time - now).get())).collect();
        waits.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| percentile(&waits, share);
        let (earliest, likely, latest) = (at(TAIL), at(0.5), at(1.0 - TAIL));
        if waits.is_empty() || !latest.is_finite() {
            return None;
        }
        let (share, least) = WIDENING;
        // Only what is not fixed is uncertain.
        let fixed = fixed.map_or(0.0, |fixed| (fixed - now).get());
        let earliest = (earliest - (earliest - fixed).max(0.0) * share - least).max(fixed);
        let likely = likely.max(fixed);
        let latest = (latest + (latest - fixed).max(0.0) * share + least).max(fixed);
        let (ratio, added) = MOST_RATIO;
        let time = |wait: f64| Some(now + Seconds::new(wait).ok()?);
        ((latest + added) <= ratio * (earliest + added))
            .then(|| Some(Self { earliest: time(earliest)?, likely: time(likely)?, latest: time(latest)? }))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(waits: &[u64]) -> Option<[f64; 3]> {
        let now = Time::from_secs(1000);
        let runs: Vec<Option<Time>> = waits.iter().map(|wait| Some(now + Seconds::from_secs(*wait))).collect();
        Range::of(&runs, None, now).map(|range| [range.earliest, range.likely, range.latest].map(|time| (time - now).get().round()))
    }

    #[test]
    fn agreeing_runs_give_a_narrow_interval() {
        assert_eq!(range(&[600; 9]), Some([508.0, 600.0, 692.0]));
        assert_eq!(range(&[60, 600, 6000]), None, "nothing that would help");
        let now = Time::from_secs(5);
        assert_eq!(Range::of(&[], None, now), None);
        assert_eq!(Range::of(&[Some(now), None, None], None, now), None, "it is not known to happen at all");
    }

    #[test]
    fn nothing_happens_before_a_fixed_time() {
        let (now, begin) = (Time::from_secs(1000), Time::from_secs(4600));
        let range = Range::of(&[Some(begin); 9], Some(begin), now).unwrap();
        let after = [range.earliest, range.likely, range.latest].map(|time| (time - begin).get());
        assert_eq!((after, range.earliest >= begin), ([0.0, 0.0, 20.0], true));
        let later = Range::of(&[Some(begin + Seconds::from_secs(600)); 9], Some(begin), now).unwrap();
        assert_eq!(later.earliest - begin, Seconds::from_secs(508), "only the time after it is uncertain");
    }

    proptest! {
        #[test]
        fn an_interval_is_ordered_and_in_the_future(waits in proptest::collection::vec(0_u64..100_000, 1..40)) {
            let Some([earliest, likely, latest]) = range(&waits) else { return Ok(()) };
            prop_assert!(0.0 <= earliest && earliest <= likely && likely <= latest);
        }
    }
}
