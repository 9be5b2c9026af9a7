//! What the scheduler knows about a job: at most what a manager knows.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;

use carma_core::{
    Fraction, JobId, JobSpec, MemoryEstimate, MemoryNeed, Metric, MiB, PerRank, Priority, Seconds, SharingClass, Utilisation,
};
use thiserror::Error;

use super::chance::{Chance, Purpose};
use crate::catalogue::{Catalogue, Workload, WorkloadId};

/// Error in a table of estimates.
#[derive(Debug, Error)]
pub enum EstimatesError {
    /// Not a table.
    #[error(transparent)]
    Form(#[from] csv::Error),
    /// The estimator has no column.
    #[error("column {wanted} is missing; the columns are {found}")]
    NoColumn {
        /// The column that was requested.
        wanted: String,
        /// The columns of the table.
        found: String,
    },
    /// A value that is not an amount of memory.
    #[error("line {line}: {value:?} is not a number of MiB")]
    Value {
        /// Line number.
        line: u64,
        /// The value.
        value: String,
    },
}

/// Estimates of one estimator, by workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimates {
    answers: HashMap<WorkloadId, MiB>,
    /// Names of rows that no workload has.
    unknown: BTreeSet<String>,
}

impl Estimates {
    /// Reads the column of one estimator from a table with a column `workload`. Skips workloads that the catalogue lacks.
    pub fn read(table: impl Read, estimator: &str, catalogue: &Catalogue) -> Result<Self, EstimatesError> {
        let mut reader = csv::Reader::from_reader(table);
        let headers = reader.headers()?.clone();
        let column = |names: [&str; 2]| {
            let found = headers.iter().position(|header| names.contains(&header));
            found.ok_or_else(|| EstimatesError::NoColumn {
                wanted: names.join(" or "),
                found: headers.iter().collect::<Vec<_>>().join(", "),
            })
        };
        let (name, answer) = (column(["workload", "task"])?, column([estimator, &format!("{estimator}_mib")])?);
        let (mut answers, mut unknown) = (HashMap::new(), BTreeSet::new());
        for row in reader.records() {
            let row = row?;
            let line = row.position().map_or(0, csv::Position::line);
            let value = row.get(answer).unwrap_or_default();
            let wrong = || EstimatesError::Value { line, value: value.to_owned() };
            let mebibytes: f64 = value.trim().parse().map_err(|_| wrong())?;
            if !(0.0..1e9).contains(&mebibytes) {
                return Err(wrong());
            }
            let name = row.get(name).unwrap_or_default();
            if let Some(workload) = catalogue.find(name) {
                answers.insert(workload, MiB(mebibytes.round() as u64));
            } else {
                unknown.insert(name.to_owned());
            }
        }
        Ok(Self { answers, unknown })
    }

    /// Names in the table that are no workloads of the catalogue. Their rows are not used.
    pub const fn unknown(&self) -> &BTreeSet<String> {
        &self.unknown
    }

    /// The estimate for a workload.
    pub fn get(&self, workload: WorkloadId) -> Option<MiB> {
        self.answers.get(&workload).copied()
    }
}

impl FromIterator<(WorkloadId, MiB)> for Estimates {
    fn from_iter<I: IntoIterator<Item = (WorkloadId, MiB)>>(answers: I) -> Self {
        Self { answers: answers.into_iter().collect(), unknown: BTreeSet::new() }
    }
}

/// Source of the memory estimates.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Estimator {
    /// No estimates.
    #[default]
    None,
    /// The measured peak.
    Oracle,
    /// Estimates from a table.
    Table(Estimates),
    /// Declared by users, as in a manager: taken as the exact need, without utilisation.
    Declared(Estimates),
}

/// Standard deviations between an estimate and its upper bound.
const CAUTION: f64 = 2.0;

/// What the scheduler knows about jobs, and the errors of its estimates.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Knowledge {
    /// Source of memory estimates.
    pub memory: Estimator,
    /// Relative standard deviation of memory estimates.
    pub memory_error: f64,
    /// Relative standard deviation of utilisation estimates.
    pub utilisation_error: f64,
    /// Relative standard deviation of duration estimates; unset: no estimates.
    pub duration_error: Option<f64>,
    /// The share of jobs that can checkpoint.
    pub checkpoint: f64,
    /// The share of jobs that print their progress.
    pub progress: f64,
    /// Priorities of jobs, by index in the trace; the default beyond.
    pub priorities: Vec<Priority>,
    /// Complete requests by workload, if each workload is one job; they replace all other knowledge.
    pub requests: HashMap<WorkloadId, JobSpec>,
}

impl Knowledge {
    /// Whether a job prints its progress.
    pub(super) fn tells_progress(&self, id: JobId, seed: u64) -> bool {
        self.progress > 0.0 && Chance::new(seed, Purpose::Progress, id.0, 0).happens(self.progress)
    }

    /// The submission of a job, with the need of each of its ranks or of the neediest.
    pub(super) fn spec(
        &self,
        id: JobId,
        gpus: u32,
        (workload, facts): (WorkloadId, &Workload),
        (alone, by_rank): (f64, bool),
        seed: u64,
    ) -> JobSpec {
        if let Some(request) = self.requests.get(&workload) {
            return JobSpec { id, ..request.clone() };
        }
        let may_checkpoint = Chance::new(seed, Purpose::Checkpoint, id.0, 0).happens(self.checkpoint);
        let mut chance = Chance::new(seed, Purpose::Estimates, id.0, 0);
        let memory_off = blur(self.memory_error, &mut chance);
        let utilisation_off = blur(self.utilisation_error, &mut chance);
        let duration = self.duration_error.and_then(|error| Seconds::new(alone * blur(error, &mut chance)).ok());
        let answer = |memory: MiB| {
            let expected = memory.0 as f64 * memory_off;
            // Estimators know their own error.
            let upper = expected * (1.0 + CAUTION * self.memory_error);
            MemoryEstimate { expected: MiB(expected.round() as u64), upper: MiB(upper.round() as u64) }
        };
        let peaks: Vec<MiB> = facts.ranks.iter().map(|rank| rank.peak).collect();
        // The published systems request the memory of the neediest rank on every GPU of a job.
        let peaks = if by_rank { PerRank::Each(peaks) } else { PerRank::Same(peaks.into_iter().max().unwrap_or_default()) };
        let estimate = match &self.memory {
            Estimator::None => None,
            Estimator::Oracle => Some(peaks.clone().map(answer)),
            Estimator::Table(estimates) => estimates.get(workload).map(|memory| PerRank::Same(answer(memory))),
            Estimator::Declared(declared) => {
                let memory = MemoryNeed { known: declared.get(workload).map(PerRank::Same), estimated: None };
                return JobSpec { gpus, memory, may_checkpoint, ..JobSpec::new(id) };
            }
        };
        // Only exact memory counts as known: an estimate above the size of every GPU is still tried, a known need is not.
        let exact = self.memory == Estimator::Oracle && self.memory_error == 0.0;
        let known = exact.then_some(peaks);
        let busiest = |counter: fn(&crate::RankProfile) -> Fraction| {
            let most = facts.ranks.iter().map(counter).max().unwrap_or_default();
            Some(Fraction::clamped(most.get() * utilisation_off))
        };
        let utilisation = Utilisation::NONE
            .with(Metric::Smact, busiest(|rank| rank.smact))
            .with(Metric::Smocc, busiest(|rank| rank.smocc))
            .with(Metric::Drama, busiest(|rank| rank.drama))
            .with(Metric::Utilisation, busiest(|rank| rank.utilisation));
        JobSpec {
            gpus,
            memory: MemoryNeed { known, estimated: estimate },
            sharing: utilisation[Metric::Utilisation].map(sharing_class),
            utilisation,
            expected_duration: duration,
            may_checkpoint,
            ..JobSpec::new(id)
        }
    }
}

/// Lucid's classes, by the GPU utilisation of a job when alone.
fn sharing_class(utilisation: Fraction) -> SharingClass {
    match utilisation.get() {
        low if low < 0.40 => SharingClass::Tiny,
        middle if middle < 0.80 => SharingClass::Medium,
        _ => SharingClass::Jumbo,
    }
}

fn blur(error: f64, chance: &mut Chance) -> f64 {
    (1.0 + error * chance.normal()).max(0.05)
}
