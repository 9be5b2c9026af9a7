//! Jobs that will be submitted, if users continue as in the last hours.

use std::collections::{HashMap, VecDeque};

use carma_core::{JobId, JobSpec, Seconds, Time};

use super::lengths::Known;

/// Submissions from which the rate is computed.
const MAX_ARRIVALS: usize = 24;
/// Jobs of one submission that are kept: an array is submitted once.
const OF_ONE: usize = 2;
/// Older submissions are ignored.
const MAX_AGE: Seconds = Seconds::from_secs(2 * 3600);
/// Maximum number of predicted submissions.
const MAX_PREDICTED: usize = 40;
/// The first number of a foreseen job. The manager's own numbers are far below.
const FIRST: u64 = u64::MAX / 4;

/// The last submissions.
#[derive(Debug, Default)]
pub(super) struct Submissions(VecDeque<(Time, Vec<(JobSpec, Known)>)>);

/// The same for one round.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// The mean time between two.
    gap: f64,
    recent: Vec<(JobSpec, Known)>,
}

impl Submissions {
    pub(super) fn note(&mut self, now: Time, job: impl FnOnce() -> Option<(JobSpec, Known)>) {
        if let Some((_, jobs)) = self.0.back_mut().filter(|(at, _)| *at == now) {
            if jobs.len() < OF_ONE {
                jobs.extend(job());
            }
            return;
        }
        if self.0.len() == MAX_ARRIVALS {
            self.0.pop_front();
        }
        self.0.push_back((now, job().into_iter().collect()));
    }

    /// The expected submissions from now on. Fewer and older submissions give fewer.
    pub(super) fn arrivals(&mut self, now: Time) -> Arrivals {
        self.0.retain(|(at, _)| now - *at < MAX_AGE);
        let Some((first, _)) = self.0.front() else { return Arrivals::default() };
        let recent: Vec<_> = self.0.iter().flat_map(|(_, jobs)| jobs.iter().cloned()).collect();
        Arrivals { gap: (now - *first).get() / self.0.len() as f64, recent }
    }
}

impl Arrivals {
    /// The next ones: `draw` gives a number between 0 and 1 for each subject, and `often` is a factor.
    pub(super) fn drawn(&self, now: Time, often: f64, draw: impl Fn(u64) -> f64) -> (Vec<(Time, JobSpec)>, HashMap<JobId, Known>) {
        let (mut arrivals, mut known) = (Vec::new(), HashMap::new());
        if self.recent.len() < 3 || often <= 0.0 || self.gap <= 0.0 {
            return (arrivals, known);
        }
        let mut at = 0.0;
        for id in (FIRST..).take(MAX_PREDICTED) {
            at -= (1.0 - draw(id)).ln() * self.gap / often;
            let place = (draw(id ^ FIRST) * self.recent.len() as f64) as usize;
            let (spec, length) = &self.recent[place.min(self.recent.len() - 1)];
            let plain = JobSpec { dependencies: Vec::new(), array: None, begin: None, hold: false, awaits_estimate: false, ..spec.clone() };
            let Ok(wait) = Seconds::new(at) else { break };
            arrivals.push((now + wait, JobSpec { id: JobId(id), ..plain }));
            known.insert(JobId(id), length.clone());
        }
        (arrivals, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_continue_at_their_rate() {
        let mut submissions = Submissions::default();
        let draw = |subject: u64| if subject.is_multiple_of(2) { 0.3 } else { 0.7 };
        for job in 1..=10 {
            submissions.note(Time::from_secs(job * 60), || Some((JobSpec::new(JobId(job)), Known::new(None, None, 0.0))));
        }
        let now = Time::from_secs(660);
        let (arrivals, known) = submissions.arrivals(now).drawn(now, 1.0, draw);
        assert_eq!((arrivals.len(), known.len()), (MAX_PREDICTED, MAX_PREDICTED));
        let last = arrivals.last().map(|(time, _)| (*time - now).get()).unwrap_or_default() / MAX_PREDICTED as f64;
        assert!((40.0..80.0).contains(&last), "one a minute: {last}");
        assert!(submissions.arrivals(now).drawn(now, 0.0, draw).0.is_empty());
        assert!(submissions.arrivals(Time::from_secs(100_000)).drawn(now, 1.0, draw).0.is_empty(), "long ago");
    }

    #[test]
    fn an_array_is_submitted_once() {
        let mut submissions = Submissions::default();
        for job in 1..=1000 {
            submissions.note(Time::from_secs(60), || Some((JobSpec::new(JobId(job)), Known::new(None, None, 0.0))));
        }
        assert_eq!(submissions.arrivals(Time::from_secs(120)).recent.len(), OF_ONE);
    }
}
