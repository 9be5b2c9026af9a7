//! Measurements of earlier runs of a job: better than any estimate.

mod signature;
mod table;

use std::collections::{BTreeMap, VecDeque};

use carma_core::{Fraction, Interference, Metric, MiB, Seconds, Utilisation, Watts, percentile};

pub use signature::{NotASignature, Signature};
pub use table::HistoryError;

/// Maximum number of runs kept per job. Older runs are dropped, because scripts change under the same command.
pub const MOST_RUNS: usize = 64;

/// Maximum share by which other runs of the same job exceed a single run's peak.
const MARGIN: f64 = 0.05;
/// Minimum margin in MiB, for small jobs.
const LEAST_MARGIN: f64 = 256.0;

/// The stored metrics: those that decisions use, except GPU utilisation, which cannot be attributed to one of several jobs.
pub(crate) const METRICS: [Metric; 3] = [Metric::Smact, Metric::Smocc, Metric::Drama];

/// Measurements of one run on its fullest GPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// Peak memory.
    pub memory: MiB,
    /// Mean utilisation of the GPU. Only SMACT, SMOCC and DRAMA are stored.
    pub utilisation: Utilisation,
    /// Mean power.
    pub watts: Option<Watts>,
    /// From start to end, for completed runs.
    pub seconds: Option<Seconds>,
    /// Interference that the scheduler learned, if any.
    pub interference: Option<Interference>,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunEnd {
    /// It completed: its peak is the job's need.
    #[default]
    Completed,
    /// It ran out of memory: the job needs more than its peak.
    OutOfMemory,
}

/// Expectation from earlier runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryEstimate {
    /// The highest peak of all runs.
    pub memory: MiB,
    /// An upper bound; more runs make it tighter.
    pub memory_upper: MiB,
    /// Medians of the recorded counters.
    pub utilisation: Utilisation,
    /// Median power.
    pub watts: Option<Watts>,
    /// Median duration.
    pub duration: Option<Seconds>,
    /// Median of the learned interference.
    pub interference: Option<Interference>,
    /// Number of runs.
    pub runs: usize,
}

/// Earlier runs by job signature.
///
/// ```
/// use carma_core::MiB;
/// use carma_estimate::history::{History, Measured, Signature};
/// let job = Signature::of_command(&["train".to_owned()], ".".as_ref());
/// let mut history = History::default();
/// assert_eq!(history.recall(&job), None);
/// for memory in [10_000, 10_200] {
///     history.record(job, Measured { memory: MiB(memory), ..Measured::default() });
/// }
/// let recalled = history.recall(&job).unwrap();
/// assert_eq!((recalled.memory, recalled.runs), (MiB(10_200), 2));
/// assert!(recalled.memory_upper > recalled.memory);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    runs: BTreeMap<Signature, VecDeque<Measured>>,
}

impl History {
    /// Adds a run. Drops invalid power values and invalid interference factors.
    pub fn record(&mut self, signature: Signature, mut run: Measured) {
        run.watts = run.watts.filter(|watts| watts.0.is_finite() && watts.0 >= 0.0);
        run.interference = run.interference.filter(Interference::is_sensible);
        run.utilisation = Utilisation::from_fn(|metric| run.utilisation[metric].filter(|_| METRICS.contains(&metric)));
        let runs = self.runs.entry(signature).or_default();
        if runs.len() == MOST_RUNS {
            runs.pop_front();
        }
        runs.push_back(run);
    }

    /// Expectation from completed runs of a job, if any.
    pub fn recall(&self, signature: &Signature) -> Option<HistoryEstimate> {
        let runs: Vec<&Measured> = self.runs.get(signature)?.iter().filter(|run| run.end == RunEnd::Completed).collect();
        let memory = runs.iter().map(|run| run.memory).max()?;
        let margin = (memory.0 as f64 * MARGIN).max(LEAST_MARGIN) / (runs.len() as f64).sqrt();
        let factor = |of: fn(&Interference) -> f64| median(runs.iter().filter_map(|run| run.interference.as_ref().map(of)));
        let interference = factor(|seen| seen.pressure).zip(factor(|seen| seen.sensitivity));
        let share =
            |metric: Metric| median(runs.iter().filter_map(|run| run.utilisation[metric].map(Fraction::get))).map(Fraction::clamped);
        Some(HistoryEstimate {
            memory,
            memory_upper: memory + MiB(margin.ceil() as u64),
            utilisation: Utilisation::from_fn(share),
            watts: median(runs.iter().filter_map(|run| run.watts.map(|watts| watts.0))).map(Watts),
            duration: median(runs.iter().filter_map(|run| run.seconds.map(Seconds::get))).and_then(|seconds| Seconds::new(seconds).ok()),
            interference: interference.map(|(pressure, sensitivity)| Interference { pressure, sensitivity }),
            runs: runs.len(),
        })
    }

    /// Highest memory with which a job ran out of memory since it last completed: it needs more.
    pub fn ran_out_with(&self, signature: &Signature) -> Option<MiB> {
        let since_completed = self.runs.get(signature)?.iter().rev().take_while(|run| run.end == RunEnd::OutOfMemory);
        since_completed.map(|run| run.memory).max()
    }
}

/// The median; none without values.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| percentile(&sorted, 0.5))
}
