//! What earlier runs of a job took: better than any estimate, where there are any.

mod signature;
mod table;

use std::collections::{BTreeMap, VecDeque};

use carma_core::{Fraction, Interference, MiB, Seconds, Utilisation, Watts};

pub use signature::{NotASignature, Signature};
pub use table::HistoryError;

/// Runs of a job that are kept; of more, the oldest are forgotten, for scripts change under the same command.
pub const MOST_RUNS: usize = 64;

/// Share by which a single run's peak is exceeded at most by others of the same job.
const MARGIN: f64 = 0.05;
/// The same in MiB, for small jobs.
const LEAST_MARGIN: f64 = 256.0;

/// What one run took on its fullest GPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Measured {
    /// Peak memory.
    pub memory: MiB,
    /// Share of time that multiprocessors had work.
    pub smact: Option<Fraction>,
    /// Share of warp slots in use.
    pub smocc: Option<Fraction>,
    /// Share of time that memory was busy.
    pub drama: Option<Fraction>,
    /// Mean power.
    pub watts: Option<Watts>,
    /// From start to end, of runs that came to their end.
    pub seconds: Option<Seconds>,
    /// What the scheduler learned of its part in interference, where it did.
    pub interference: Option<Interference>,
    /// How it ended.
    pub end: RunEnd,
}

/// How a run ended, as far as it matters for later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunEnd {
    /// It completed: its peak is what the job needs.
    #[default]
    Completed,
    /// It ran out of memory: the job needs more than its peak.
    OutOfMemory,
}

/// What earlier runs let expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recalled {
    /// The highest peak of all runs.
    pub memory: MiB,
    /// A bound above it; the more runs, the closer.
    pub memory_upper: MiB,
    /// Medians of the counters that were recorded.
    pub utilisation: Utilisation,
    /// Median power.
    pub watts: Option<Watts>,
    /// Median duration.
    pub duration: Option<Seconds>,
    /// Median of what was learned of its part in interference.
    pub interference: Option<Interference>,
    /// Runs that this is from.
    pub runs: usize,
}

/// Earlier runs by what they ran.
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
    /// Adds a run. A power that is none is left out, and so are factors that nobody can have learned.
    pub fn record(&mut self, signature: Signature, mut run: Measured) {
        run.watts = run.watts.filter(|watts| watts.0.is_finite() && watts.0 >= 0.0);
        run.interference = run.interference.filter(Interference::is_sensible);
        let runs = self.runs.entry(signature).or_default();
        if runs.len() == MOST_RUNS {
            runs.pop_front();
        }
        runs.push_back(run);
    }

    /// What completed runs of a job let expect, where there were any.
    pub fn recall(&self, signature: &Signature) -> Option<Recalled> {
        let runs: Vec<&Measured> = self.runs.get(signature)?.iter().filter(|run| run.end == RunEnd::Completed).collect();
        let memory = runs.iter().map(|run| run.memory).max()?;
        let margin = (memory.0 as f64 * MARGIN).max(LEAST_MARGIN) / (runs.len() as f64).sqrt();
        let factor = |of: fn(&Interference) -> f64| median(runs.iter().filter_map(|run| run.interference.as_ref().map(of)));
        let interference = factor(|seen| seen.pressure).zip(factor(|seen| seen.sensitivity));
        let share =
            |of: fn(&Measured) -> Option<Fraction>| median(runs.iter().filter_map(|run| of(run).map(Fraction::get))).map(Fraction::clamped);
        Some(Recalled {
            memory,
            memory_upper: memory + MiB(margin.ceil() as u64),
            utilisation: Utilisation {
                smact: share(|run| run.smact),
                smocc: share(|run| run.smocc),
                drama: share(|run| run.drama),
                gpu: None,
            },
            watts: median(runs.iter().filter_map(|run| run.watts.map(|watts| watts.0))).map(Watts),
            duration: median(runs.iter().filter_map(|run| run.seconds.map(Seconds::get))).and_then(|seconds| Seconds::new(seconds).ok()),
            interference: interference.map(|(pressure, sensitivity)| Interference { pressure, sensitivity }),
            runs: runs.len(),
        })
    }

    /// The most memory with which a job ran out of it since it last completed: it needs more than this.
    pub fn ran_out_with(&self, signature: &Signature) -> Option<MiB> {
        let since_completed = self.runs.get(signature)?.iter().rev().take_while(|run| run.end == RunEnd::OutOfMemory);
        since_completed.map(|run| run.memory).max()
    }

    /// Different jobs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether nothing has been recorded.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

/// The middle value, or half way between the two middle ones.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { *upper } else { f64::midpoint(sorted[middle - 1], *upper) })
}
