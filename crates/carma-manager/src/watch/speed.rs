//! Whether an attempt is much slower than it was.
//!
//! Progress is measured over windows of a set length, under conditions that do not change: the attempts beside it, other processes, and what
//! throttles its GPUs. A window counts as slow against the median of earlier ones under the same conditions, or under harder ones, so neither sharing nor
//! throttling is taken for a fault of the attempt.

use std::collections::{BTreeSet, VecDeque};

use carma_core::{AttemptId, Fraction, Seconds, Time};
use carma_gpu::Throttling;

/// Earlier windows that a speed is compared with, at least and at most.
const MIN_WINDOWS: usize = 3;
const MAX_WINDOWS: usize = 32;
/// Conditions that are remembered, each with its windows.
const MAX_CONDITIONS: usize = 16;

/// What else slows an attempt down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Conditions {
    /// Other attempts on its GPUs.
    pub(crate) neighbours: BTreeSet<AttemptId>,
    /// Processes there that are not ours.
    pub(crate) foreign: usize,
    pub(crate) throttling: BTreeSet<Throttling>,
}

impl Conditions {
    /// Whether these are the same as the others, or easier.
    fn no_harder_than(&self, other: &Self) -> bool {
        self.neighbours.is_subset(&other.neighbours) && self.foreign <= other.foreign && self.throttling.is_subset(&other.throttling)
    }
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pace {
    /// There is nothing to compare with, or no measurement since the last one.
    Unknown,
    /// It is about as fast as before, or its conditions have changed.
    Usual,
    /// It is much slower.
    Slow { since: Time, speed: f64 },
}

/// A measurement in progress.
#[derive(Debug, Clone, PartialEq)]
struct Window {
    since: Time,
    from: f64,
    conditions: Conditions,
}

/// The progress so far.
#[derive(Debug, Clone, Default)]
pub(super) struct SpeedWatch {
    last: Option<f64>,
    /// The largest step of progress.
    step: f64,
    window: Option<Window>,
    /// The progress a second of finished windows that were not slow, by their conditions.
    usual: VecDeque<(Conditions, VecDeque<f64>)>,
}

impl SpeedWatch {
    pub(super) fn look(&mut self, progress: Option<Fraction>, conditions: Conditions, now: Time, below: Fraction, length: Seconds) -> Pace {
        let Some(done) = progress.map(Fraction::get) else { return Pace::Unknown };
        if self.last.is_some_and(|last| done < last) {
            *self = Self::default();
        }
        let reported = self.last.replace(done).filter(|last| *last < done);
        self.step = self.step.max(reported.map_or(0.0, |last| done - last));
        if self.window.as_ref().is_some_and(|window| window.conditions != conditions) {
            // Earlier measurements say nothing about the new conditions.
            self.window = reported.map(|_| Window { since: now, from: done, conditions });
            return Pace::Usual;
        }
        // It begins with a report: when the one before it was reached is not known.
        let Some(window) = &self.window else {
            self.window = reported.map(|_| Window { since: now, from: done, conditions });
            return Pace::Unknown;
        };
        // What follows the last report, such as a final evaluation, has no speed.
        if now - window.since < length || done >= 1.0 {
            return Pace::Unknown;
        }
        let (since, elapsed) = (window.since, (now - window.since).get());
        // Between two reports it may have done up to a step more.
        let unreported = if reported.is_some() { 0.0 } else { self.step };
        let rate = (done + unreported - window.from) / elapsed;
        let usual = self.usual_rate(&conditions);
        let slow = usual.map(|usual| rate / usual).filter(|speed| *speed < below.get());
        if reported.is_some() {
            self.window = Some(Window { since: now, from: done, conditions: conditions.clone() });
            if slow.is_none() {
                self.remember(conditions, rate);
            }
        }
        match (slow, usual) {
            (Some(speed), _) => Pace::Slow { since, speed },
            (None, Some(_)) if reported.is_some() => Pace::Usual,
            _ => Pace::Unknown,
        }
    }

    fn remember(&mut self, conditions: Conditions, rate: f64) {
        let place = self.usual.iter().position(|(known, _)| *known == conditions);
        let mut rates = place.and_then(|place| self.usual.remove(place)).map(|(_, rates)| rates).unwrap_or_default();
        rates.push_back(rate);
        rates.drain(..rates.len().saturating_sub(MAX_WINDOWS));
        self.usual.push_back((conditions, rates));
        self.usual.drain(..self.usual.len().saturating_sub(MAX_CONDITIONS));
    }

    /// The best median of earlier windows under the same or harder conditions.
    fn usual_rate(&self, conditions: &Conditions) -> Option<f64> {
        let comparable = self.usual.iter().filter(|(earlier, rates)| rates.len() >= MIN_WINDOWS && conditions.no_harder_than(earlier));
        comparable.filter_map(|(_, rates)| median(rates)).filter(|rate| *rate > 0.0).reduce(f64::max)
    }
}

fn median(rates: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = rates.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use carma_core::JobId;
    use proptest::prelude::*;

    use super::*;

    const LENGTH: Seconds = Seconds::from_secs(600);

    fn beside(jobs: impl IntoIterator<Item = u64>) -> Conditions {
        Conditions { neighbours: jobs.into_iter().map(|job| AttemptId { job: JobId(job), number: 1 }).collect(), ..Conditions::default() }
    }

    /// An attempt that reports every ten seconds.
    #[derive(Default)]
    struct Lab {
        watch: SpeedWatch,
        now: Time,
        done: f64,
    }

    impl Lab {
        /// Runs for this many seconds at this progress per second; returns the worst answer.
        fn run(&mut self, seconds: u64, rate: f64, conditions: &Conditions) -> Pace {
            let mut worst = Pace::Unknown;
            for _ in 0..seconds / 10 {
                self.now = self.now + Seconds::from_secs(10);
                self.done += rate * 10.0;
                match self.watch.look(Some(Fraction::clamped(self.done)), conditions.clone(), self.now, Fraction::clamped(0.3), LENGTH) {
                    slow @ Pace::Slow { .. } => worst = slow,
                    Pace::Usual if worst == Pace::Unknown => worst = Pace::Usual,
                    _ => {}
                }
            }
            worst
        }
    }

    fn is_slow(pace: Pace) -> bool {
        matches!(pace, Pace::Slow { .. })
    }

    #[test]
    fn an_attempt_is_slow_against_itself_alone() {
        let (mut lab, alone) = (Lab::default(), beside([]));
        assert_eq!(lab.run(2_000, 1e-5, &alone), Pace::Unknown, "three windows are needed");
        assert_eq!(lab.run(600, 1e-5, &alone), Pace::Usual);
        assert!(!is_slow(lab.run(1_800, 0.4e-5, &alone)));
        let Pace::Slow { speed, .. } = lab.run(1_800, 0.1e-5, &alone) else { panic!("it is slow") };
        assert!((0.05..0.3).contains(&speed), "{speed}");
        assert_eq!(lab.run(600, 1e-5, &alone), Pace::Usual, "and is as before again");
    }

    #[test]
    fn stopped_progress_is_found_without_a_report() {
        let (mut lab, alone) = (Lab::default(), beside([]));
        lab.run(3_000, 1e-5, &alone);
        assert!(is_slow(lab.run(1_800, 0.0, &alone)));
        lab.done = 1.0;
        lab.run(10, 0.0, &alone);
        assert!(!is_slow(lab.run(7_200, 0.0, &alone)), "all is done but to end");
    }

    #[test]
    fn co_runners_and_throttling_do_not_make_a_job_slow() {
        let (mut lab, alone) = (Lab::default(), beside([]));
        lab.run(3_000, 1e-5, &alone);
        assert!(!is_slow(lab.run(3_600, 0.1e-5, &beside([2]))));
        let hot = Conditions { throttling: BTreeSet::from([Throttling::Thermal]), ..beside([]) };
        assert!(!is_slow(lab.run(3_600, 0.1e-5, &hot)));
        assert!(!is_slow(lab.run(3_600, 0.1e-5, &Conditions { foreign: 1, ..beside([]) })));
        assert!(is_slow(lab.run(3_600, 0.1e-5, &alone)), "alone it was faster");
    }

    #[test]
    fn fewer_co_runners_must_not_be_slower_than_more() {
        let mut lab = Lab::default();
        lab.run(3_000, 1e-5, &beside([2, 3]));
        assert!(is_slow(lab.run(1_800, 0.1e-5, &beside([3]))));
        assert!(!is_slow(lab.run(1_800, 0.1e-5, &beside([4]))), "another one may slow it down more");
    }

    #[test]
    fn a_count_that_begins_again_is_measured_again() {
        let (mut lab, alone) = (Lab::default(), beside([]));
        lab.run(3_000, 1e-5, &alone);
        lab.done = 0.0;
        assert_eq!(lab.run(1_200, 0.1e-5, &alone), Pace::Unknown);
    }

    proptest! {
        /// At a steady speed, whatever it is and however often it reports, nothing is slow.
        #[test]
        fn a_steady_attempt_is_never_slow(every in 1_u64..4_000, rate in 1e-7..1e-5_f64) {
            let (mut watch, mut reported) = (SpeedWatch::default(), 0.0);
            for second in (0..40_000_u64).step_by(10) {
                if (second / every) != (second.saturating_sub(10) / every) {
                    reported = second as f64 * rate;
                }
                let pace = watch.look(Some(Fraction::clamped(reported)), beside([]), Time::from_secs(second), Fraction::clamped(0.3), LENGTH);
                prop_assert!(!is_slow(pace), "{pace:?} at {second}");
            }
        }

        /// What stops is found within the time of a few windows or steps.
        #[test]
        fn a_stopped_attempt_is_slow(every in 10_u64..2_000) {
            let mut watch = SpeedWatch::default();
            let mut look = |second: u64, done: f64| {
                watch.look(Some(Fraction::clamped(done)), beside([]), Time::from_secs(second), Fraction::clamped(0.3), LENGTH)
            };
            let rate = 1e-6;
            for second in (0..20_000).step_by(10) {
                look(second, (second / every * every) as f64 * rate);
            }
            let still = (19_990 / every * every) as f64 * rate;
            let found = (20_000..20_000 + 8 * every.max(1_000)).step_by(10).any(|second| is_slow(look(second, still)));
            prop_assert!(found);
        }
    }
}
