//! A part of a trace: a window of time, or some of its jobs.

use carma_core::Seconds;

use super::Trace;
use super::draft::difference;
use crate::random::Random;

/// A window of submissions: from `from` (inclusive) to `to` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// Start. Submissions of the sample count from here.
    pub from: Seconds,
    /// End; none is the end of the trace.
    pub to: Option<Seconds>,
}

/// The jobs submitted in a window; if a number is given, a uniform random sample of them, by the seed. They stay in order of
/// submission.
#[must_use]
pub fn sample(trace: &Trace, window: Window, jobs: Option<usize>, seed: u64) -> Trace {
    let inside = |at: Seconds| at >= window.from && window.to.is_none_or(|to| at < to);
    let mut left: usize = trace.jobs.iter().filter(|job| inside(job.submitted)).count();
    let mut wanted = jobs.unwrap_or(left).min(left);
    let mut random = Random::new(seed);
    let mut sampled = Trace::default();
    for job in trace.jobs.iter().filter(|job| inside(job.submitted)) {
        // Selection sampling: all choices of `wanted` out of `left` are equally likely.
        if random.below(left) < wanted {
            let mut job = job.clone();
            job.submitted = difference(job.submitted, window.from);
            sampled.jobs.push(job);
            wanted -= 1;
        }
        left -= 1;
    }
    sampled
}

/// Randomly reassigns the jobs to the same submission times.
///
/// ```
/// use carma_sim::{Trace, trace::shuffle};
/// assert_eq!(shuffle(&Trace::default(), 1), Trace::default());
/// ```
#[must_use]
pub fn shuffle(trace: &Trace, seed: u64) -> Trace {
    let mut shuffled = trace.clone();
    Random::new(seed).shuffle(&mut shuffled.jobs);
    shuffled.jobs.iter_mut().zip(&trace.jobs).for_each(|(job, before)| job.submitted = before.submitted);
    shuffled
}
