//! Rounds of runs ahead, on a thread of their own.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use carma_core::{JobId, Scheduler, Seconds, Time};
use carma_estimate::durations::Length;
use carma_sim::{Assumptions, Future, Lookahead};

use super::arrivals::Arrivals;
use super::lengths::Known;
use super::range::{JobPrediction, Range};

/// How many runs a round has. Primes: each job gets each quantile once, in an order of its own.
const RUNS: [u64; 3] = [37, 19, 11];
/// The time limit of a round. A single run that takes too long is the last.
const ROUND_TIMEOUT: Duration = Duration::from_millis(400);
/// The most events of a run.
const STEPS: usize = 4_000;
/// How far predicted interference is off, as a factor: two of three within this.
const INTERFERENCE: f64 = 0.35;
/// The rate of submissions is at most this many times that of the last hours, and at least zero.
const MAX_RATE_RATIO: f64 = 2.0;
/// From a launch to the first activity on a GPU. Published: 8.2 s, p95 20.6 s.
const START_UP: (Seconds, f64) = (Seconds::from_secs(8), 0.56);

/// The present state, from which runs start.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) now: Time,
    pub(super) scheduler: Scheduler,
    pub(super) known: HashMap<JobId, Known>,
    pub(super) arrivals: Arrivals,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct Predicted {
    pub(super) jobs: HashMap<JobId, JobPrediction>,
    pub(super) took: Duration,
}

/// Which quantile each run gets of everything that is not known.
#[derive(Debug, Clone, Copy)]
struct Draw {
    run: u64,
    of: u64,
}

impl Draw {
    /// A number above 0 and below 1: over all runs of a round, each part of that range once.
    fn quantile(self, subject: u64) -> f64 {
        // A multiple of each number is another order of a prime number of runs.
        let mixed = subject.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let place = (self.run * (1 + mixed % (self.of - 1)) + (mixed >> 32) % self.of) % self.of;
        (place as f64 + 0.5) / self.of as f64
    }

    fn assumptions(self) -> Assumptions {
        const INTERFERENCE_DRAW: u64 = u64::MAX;
        const START_UP_DRAW: u64 = u64::MAX - 1;
        let unit = Seconds::from_secs(1000);
        let interference = Length::new(unit, INTERFERENCE).quantile(self.quantile(INTERFERENCE_DRAW)).get() / unit.get();
        let start_up = Length::new(START_UP.0, START_UP.1).quantile(self.quantile(START_UP_DRAW));
        Assumptions { interference, start_up, steps: STEPS, ..Assumptions::default() }
    }
}

impl Round {
    /// Simulates as many runs as there is time for. If even the fewest take too long, nothing is predicted.
    pub(super) fn look_ahead(&self) -> Predicted {
        let began = Instant::now();
        let first = self.run(Draw { run: 0, of: RUNS[0] });
        let runs = RUNS.into_iter().find(|runs| began.elapsed() * u32::try_from(*runs).unwrap_or(u32::MAX) <= ROUND_TIMEOUT);
        let futures: Vec<Future> = match runs {
            Some(of) if of == RUNS[0] => std::iter::once(first).chain((1..of).map(|run| self.run(Draw { run, of }))).collect(),
            Some(of) => (0..of).map(|run| self.run(Draw { run, of })).collect(),
            None => Vec::new(),
        };
        Predicted { jobs: self.predictions(&futures), took: began.elapsed() }
    }

    fn run(&self, draw: Draw) -> Future {
        const RATE_DRAW: u64 = u64::MAX - 2;
        let often = MAX_RATE_RATIO * draw.quantile(RATE_DRAW);
        let (arrivals, coming) = self.arrivals.drawn(self.now, often, |subject| draw.quantile(subject));
        let known = |job: &JobId| self.known.get(job).or_else(|| coming.get(job));
        let left = |job: JobId| known(&job).map_or(Seconds::ZERO, |known| known.left(draw.quantile(job.0)));
        Lookahead::run(self.scheduler.clone(), left, &Assumptions { arrivals, ..draw.assumptions() })
    }

    fn predictions(&self, futures: &[Future]) -> HashMap<JobId, JobPrediction> {
        let prediction = |(job, known): (&JobId, &Known)| {
            let begin = self.scheduler.job(*job).and_then(|job| job.spec.begin);
            let times = |of: fn(&Future) -> &BTreeMap<JobId, Time>| {
                let times: Vec<Option<Time>> = futures.iter().map(|future| of(future).get(job).copied()).collect();
                Range::of(&times, begin, self.now)
            };
            let waits = self.scheduler.job(*job).is_some_and(|job| job.state.active().is_none());
            let starts = if waits { times(|future| &future.starts) } else { None };
            let ends = known.basis.as_ref().and_then(|_| times(|future| &future.ends));
            let prediction = JobPrediction { starts, ends, basis: known.basis.clone() };
            (prediction != JobPrediction::default()).then_some((*job, prediction))
        };
        self.known.iter().filter_map(prediction).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn over_a_round_each_subject_gets_each_quantile_once() {
        for of in RUNS {
            for subject in [0, 1, 7, 12_345, u64::MAX] {
                let places: BTreeSet<u64> = (0..of).map(|run| (Draw { run, of }.quantile(subject) * of as f64) as u64).collect();
                assert_eq!(places.len() as u64, of, "{subject}");
            }
        }
    }
}
