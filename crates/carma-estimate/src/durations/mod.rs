//! How long jobs take when alone: learned from earlier runs of the same and of similar jobs.
//!
//! Runs belong to groups, from the same command line to all jobs of a user. The expectation of a group is shrunk towards that of the next larger one:
//! the more runs a group has and the more they agree, the less the larger group counts.
//!
//! ```text
//! user ─► program ─► model ─► numbers differ ─► seeds differ ─► same command        each step: (prior, runs of the group) ─► prior of the next
//! ```

mod groups;
mod length;
mod table;

use std::collections::{HashMap, VecDeque};

use carma_core::{Seconds, mean};

pub use groups::{Groups, Request, Similarity, epochs};
pub use length::Length;
pub use table::DurationsError;

use crate::history::Signature;
use length::logarithm;

/// Maximum number of runs that a group keeps; the oldest are dropped.
const MOST_RUNS: usize = 64;
/// The weight of the usual spread of a group, in runs.
const RUNS_OF_USUAL_SPREAD: f64 = 4.0;

/// The length of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    seconds: Seconds,
    units: Option<f64>,
}

/// The expected length of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// How long it takes when alone.
    pub length: Length,
    /// The closest group with runs.
    pub likeness: Similarity,
    /// Their number.
    pub runs: usize,
}

/// The lengths of earlier runs.
///
/// ```
/// use carma_core::Seconds;
/// use carma_estimate::durations::{Durations, Groups, Request};
/// let words = ["python", "train.py"].map(str::to_owned);
/// let groups = Groups::of(&Request { words: &words, directory: "/home/ada", model: None, gpus: 1, user: 1, shared: false });
/// let mut durations = Durations::default();
/// assert_eq!(durations.expected(&groups), None);
/// durations.record(groups, Seconds::from_secs(600));
/// let once = durations.expected(&groups).unwrap();
/// assert_eq!((once.length.median().get().round(), once.source().as_str()), (600.0, "1 earlier run of this command"));
/// durations.record(groups, Seconds::from_secs(620));
/// assert!(durations.expected(&groups).unwrap().length.spread() < once.length.spread());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations {
    groups: HashMap<Signature, VecDeque<Run>>,
    /// All runs that can still be in a group, oldest first.
    runs: VecDeque<(Groups, Seconds)>,
}

/// Maximum number of runs that a table keeps.
const MOST_KEPT: usize = 20_000;

impl Durations {
    /// Adds a run.
    pub fn record(&mut self, groups: Groups, seconds: Seconds) {
        for key in groups.keys.into_iter().flatten() {
            let runs = self.groups.entry(key).or_default();
            if runs.len() == MOST_RUNS {
                runs.pop_front();
            }
            runs.push_back(Run { seconds, units: groups.units });
        }
        if self.runs.len() == MOST_KEPT {
            self.runs.pop_front();
        }
        self.runs.push_back((groups, seconds));
    }

    /// How long a job should take when alone; unset: its user has run nothing yet.
    pub fn expected(&self, groups: &Groups) -> Option<Expected> {
        let mut expected: Option<Expected> = None;
        for (likeness, key) in Similarity::ALL.into_iter().zip(groups.keys).rev() {
            let Some(runs) = key.and_then(|key| self.groups.get(&key)) else { continue };
            let length = shrunk(&logarithms(runs, likeness, groups.units), likeness.usual_spread(), expected.map(|before| before.length));
            expected = Some(Expected { length, likeness, runs: runs.len() });
        }
        expected
    }
}

impl Expected {
    /// What it is based on, for people.
    pub fn source(&self) -> String {
        let runs = if self.runs == 1 { "run" } else { "runs" };
        format!("{} earlier {runs} {}", self.runs, self.likeness)
    }
}

/// The logarithms of lengths, scaled to this many units of work.
fn logarithms(runs: &VecDeque<Run>, likeness: Similarity, units: Option<f64>) -> Vec<f64> {
    let scale = |run: &Run| units.zip(run.units).filter(|_| likeness.scales()).map_or(0.0, |(wanted, had)| (wanted / had).ln());
    runs.iter().map(|run| logarithm(run.seconds) + scale(run)).collect()
}

/// The next length of a group with these, of which a larger group says this.
fn shrunk(seen: &[f64], usual_spread: f64, larger: Option<Length>) -> Length {
    let (count, centre) = (seen.len() as f64, mean(seen));
    let squares: f64 = seen.iter().map(|value| (value - centre).powi(2)).sum();
    let variance = (RUNS_OF_USUAL_SPREAD * usual_spread * usual_spread + squares) / (RUNS_OF_USUAL_SPREAD + count - 1.0);
    let (of_prior, prior) = larger.map_or((0.0, 0.0), |larger| (1.0 / larger.variance().max(1e-6), larger.mean()));
    let precision = of_prior + count / variance;
    Length::of_logarithm((of_prior * prior + count / variance * centre) / precision, 1.0 / precision + variance)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn groups(line: &str) -> Groups {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Groups::of(&Request { words: &words, directory: "/home/ada", model: None, gpus: 1, user: 1, shared: false })
    }

    fn after(runs: &[(&str, u64)]) -> Durations {
        let mut durations = Durations::default();
        for (line, seconds) in runs {
            durations.record(groups(line), Seconds::from_secs(*seconds));
        }
        durations
    }

    #[test]
    fn the_closest_runs_count_most() {
        let durations = after(&[("a.py --lr 1", 100), ("a.py --lr 2", 110), ("b.py --lr 1", 10_000), ("a.py --lr 1 --seed 3", 105)]);
        let of = |line| durations.expected(&groups(line)).unwrap();
        assert_eq!(of("a.py --lr 1").likeness, Similarity::Command);
        assert!((95.0..125.0).contains(&of("a.py --lr 1").length.median().get()), "{:?}", of("a.py --lr 1"));
        assert_eq!(of("a.py --lr 9").likeness, Similarity::Numbers);
        assert!(of("a.py --lr 9").length.spread() > of("a.py --lr 1").length.spread());
        assert_eq!(of("c.py").source(), "4 earlier runs of this user");
        assert!(of("c.py").length.spread() > 1.0, "that says next to nothing");
    }

    #[test]
    fn twice_the_epochs_take_twice_as_long() {
        let durations = after(&[("a.py --epochs 10", 1000), ("a.py --epochs 10", 1020)]);
        let expected = durations.expected(&groups("a.py --epochs 20")).unwrap();
        assert_eq!(expected.likeness, Similarity::Settings);
        assert!((1800.0..2200.0).contains(&expected.length.median().get()), "{expected:?}");
    }

    proptest! {
        #[test]
        fn the_expected_value_lies_between_the_observations(lengths in proptest::collection::vec(10_u64..100_000, 1..20)) {
            let runs: Vec<(&str, u64)> = lengths.iter().map(|seconds| ("a.py", *seconds)).collect();
            let median = after(&runs).expected(&groups("a.py")).unwrap().length.median().get();
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            prop_assert!((*least as f64 * 0.999..=*most as f64 * 1.001).contains(&median), "{median}");
        }

        #[test]
        fn agreeing_runs_increase_the_certainty(seconds in 10_u64..100_000, count in 1_usize..20) {
            let spread = |count| after(&vec![("a.py", seconds); count]).expected(&groups("a.py")).unwrap().length.spread();
            prop_assert!(spread(count + 1) < spread(count));
        }

        #[test]
        fn tables_keep_the_expectation(lengths in proptest::collection::vec((0_usize..4, 10_u64..100_000), 1..30)) {
            let lines = ["a.py --epochs 3", "a.py --epochs 4", "b.py", "c.py --model x"];
            let durations = after(&lengths.iter().map(|(line, seconds)| (lines[*line], *seconds)).collect::<Vec<_>>());
            let mut table = Vec::new();
            durations.write(&mut table).unwrap();
            prop_assert_eq!(&Durations::read(&table[..]).unwrap(), &durations);
        }
    }
}
