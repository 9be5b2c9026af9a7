//! Measured runs of several jobs on one GPU: pairs started together, and crowds started one after the other.

use std::collections::BTreeSet;
use std::io::Read;

use serde::Deserialize;

use crate::catalogue::{Catalogue, WorkloadId};
use crate::tables::{self, TableError};

/// Contents of a table of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations<Run> {
    /// The runs.
    pub runs: Vec<Run>,
    /// Workloads that the catalogue lacks; their rows are skipped.
    pub unknown: BTreeSet<String>,
}

/// Two jobs started together on one GPU; when the shorter ends, the longer runs alone.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRun {
    /// The two workloads.
    pub workloads: [WorkloadId; 2],
    /// Their times alone.
    pub alone: [f64; 2],
    /// Their times together.
    pub paired: [f64; 2],
}

impl PairRun {
    /// The two workloads in the order of the catalogue.
    pub(super) fn sorted(&self) -> [WorkloadId; 2] {
        let [one, other] = self.workloads;
        [one.min(other), one.max(other)]
    }
}

/// Jobs started one after the other on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct CrowdTrial {
    /// Name of the trial.
    pub name: String,
    /// The jobs in order of start.
    pub workloads: Vec<WorkloadId>,
    /// Their times alone.
    pub alone: Vec<f64>,
    /// Mean of collocated time over time alone.
    pub mean_slowdown: f64,
}

#[derive(Deserialize)]
struct PairRow {
    a: String,
    b: String,
    solo_a_s: f64,
    solo_b_s: f64,
    pair_a_s: f64,
    pair_b_s: f64,
}

#[derive(Deserialize)]
struct CrowdRow {
    trial: String,
    jobs: String,
    solo_s: String,
    mean_slowdown: f64,
}

/// Error in a row.
enum RowError {
    Unknown(String),
    Wrong(String),
}

impl From<String> for RowError {
    fn from(problem: String) -> Self {
        Self::Wrong(problem)
    }
}

fn rows<Row: for<'row> Deserialize<'row>, Run>(
    table: impl Read,
    check: impl Fn(Row) -> Result<Run, RowError>,
) -> Result<Observations<Run>, TableError> {
    let mut observations = Observations { runs: Vec::new(), unknown: BTreeSet::new() };
    for (line, row) in tables::rows(table)? {
        match check(row) {
            Ok(run) => observations.runs.push(run),
            Err(RowError::Unknown(name)) => _ = observations.unknown.insert(name),
            Err(RowError::Wrong(problem)) => return Err(TableError::Row { line, problem }),
        }
    }
    if observations.runs.is_empty() { Err(TableError::Missing("no row has only workloads of the catalogue")) } else { Ok(observations) }
}

fn workload(catalogue: &Catalogue, name: &str) -> Result<WorkloadId, RowError> {
    catalogue.find(name).ok_or_else(|| RowError::Unknown(name.to_owned()))
}

fn positive<const N: usize>(values: [f64; N]) -> Result<[f64; N], String> {
    match values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
        Some(wrong) => Err(format!("{wrong} is not a number above 0")),
        None => Ok(values),
    }
}

/// Reads pairs: `a,b,solo_a_s,solo_b_s,pair_a_s,pair_b_s`.
pub fn read_pairs(table: impl Read, catalogue: &Catalogue) -> Result<Observations<PairRun>, TableError> {
    rows(table, |row: PairRow| {
        Ok(PairRun {
            workloads: [workload(catalogue, &row.a)?, workload(catalogue, &row.b)?],
            alone: positive([row.solo_a_s, row.solo_b_s])?,
            paired: positive([row.pair_a_s, row.pair_b_s])?,
        })
    })
}

/// Reads crowds: `trial,jobs,solo_s,mean_slowdown`, jobs and times separated by semicolons.
pub fn read_crowds(table: impl Read, catalogue: &Catalogue) -> Result<Observations<CrowdTrial>, TableError> {
    rows(table, |row: CrowdRow| {
        let workloads = row.jobs.split(';').map(|name| workload(catalogue, name)).collect::<Result<Vec<_>, _>>()?;
        let second = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a number")).and_then(|value| Ok(positive([value])?[0]));
        let alone = row.solo_s.split(';').map(second).collect::<Result<Vec<_>, String>>()?;
        if alone.len() != workloads.len() {
            return Err(RowError::Wrong(format!("{} jobs, but {} times alone", workloads.len(), alone.len())));
        }
        let [mean_slowdown] = positive([row.mean_slowdown])?;
        Ok(CrowdTrial { name: row.trial, workloads, alone, mean_slowdown })
    })
}
