//! The catalogue's file format: TOML, to read and extend by hand.

use std::collections::BTreeMap;

use carma_core::{Fraction, MiB, Seconds, Watts};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Catalogue, RankProfile, Workload, WorkloadId};

/// Error in a catalogue.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// Not TOML, or not of this form.
    #[error(transparent)]
    Form(#[from] toml::de::Error),
    /// Not a table of solo measurements.
    #[error("{0}")]
    Table(String),
    /// Two workloads with the same name.
    #[error("{name:?} names both {first} and {second}")]
    NameTaken {
        /// The name.
        name: String,
        /// The workload that already has it.
        first: String,
        /// The second workload with it.
        second: String,
    },
    /// An invalid number.
    #[error("{workload}: {key} {problem}")]
    Invalid {
        /// The workload.
        workload: String,
        /// The key of the number.
        key: &'static str,
        /// Description of the error.
        problem: String,
    },
    /// The source of the measurement is missing.
    #[error("{workload}: source {key:?} is not listed under [source]")]
    UnknownSource {
        /// The workload.
        workload: String,
        /// The missing key.
        key: String,
    },
}

/// Contents of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    source: BTreeMap<String, String>,
    #[serde(default)]
    workload: Vec<Entry>,
}

/// A workload in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    model: String,
    dataset: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epochs: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    family: Option<String>,
    gpus: usize,
    seconds: f64,
    peak_mib: Vec<u64>,
    smact: Vec<f64>,
    smocc: Vec<f64>,
    drama: Vec<f64>,
    utilisation: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    power_w: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Entry {
    fn check(self) -> Result<Workload, CatalogueError> {
        let invalid = |key, problem: String| CatalogueError::Invalid { workload: self.name.clone(), key, problem };
        let counters = [("smact", &self.smact), ("smocc", &self.smocc), ("drama", &self.drama), ("utilisation", &self.utilisation)];
        let lengths = counters.map(|(key, list)| (key, list.len())).into_iter().chain([("peak_mib", self.peak_mib.len())]);
        let power = Some(("power_w", self.power_w.len())).filter(|(_, listed)| *listed > 0);
        if let Some((key, listed)) = lengths.chain(power).find(|(_, listed)| *listed != self.gpus) {
            return Err(invalid(key, format!("has {listed} values, but the workload has {} GPUs", self.gpus)));
        }
        let fraction =
            |key, list: &[f64], rank: usize| Fraction::new(list[rank]).map_err(|error| invalid(key, format!("is wrong: {error}")));
        let rank = |rank: usize| {
            Ok(RankProfile {
                peak: MiB(self.peak_mib[rank]),
                smact: fraction("smact", &self.smact, rank)?,
                smocc: fraction("smocc", &self.smocc, rank)?,
                drama: fraction("drama", &self.drama, rank)?,
                utilisation: fraction("utilisation", &self.utilisation, rank)?,
                power: self.power_w.get(rank).copied().map(Watts),
            })
        };
        let ranks = (0..self.gpus).map(rank).collect::<Result<Vec<_>, CatalogueError>>()?;
        let seconds = Seconds::new(self.seconds).map_err(|error| invalid("seconds", format!("is wrong: {error}")))?;
        let peaks = ranks.iter().map(|rank| rank.peak).min().unwrap_or_default();
        if let Some(wrong) = self.power_w.iter().find(|watts| !(0.0..=10_000.0).contains(*watts)) {
            return Err(invalid("power_w", format!("cannot be {wrong}: give watts from 0 to 10000")));
        }
        let zeros = [("gpus", ranks.is_empty()), ("peak_mib", peaks == MiB::ZERO), ("seconds", seconds == Seconds::ZERO)];
        if let Some((key, _)) = zeros.into_iter().find(|(_, zero)| *zero) {
            return Err(invalid(key, "must be more than 0".to_owned()));
        }
        Ok(Workload {
            family: self.family.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            model: self.model,
            dataset: self.dataset,
            batch: self.batch,
            epochs: self.epochs,
            seconds,
            ranks,
            aliases: self.aliases,
            source: self.source,
            note: self.note,
        })
    }
}

impl Catalogue {
    /// The shipped catalogue.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
    pub fn shipped() -> Self {
        let mut catalogue = Self::default();
        catalogue.extend(include_str!("workloads.toml")).expect("the shipped catalogue is well-formed");
        catalogue
    }

    /// Adds the workloads of a file, all or none.
    pub fn extend(&mut self, text: &str) -> Result<(), CatalogueError> {
        let file: File = toml::from_str(text)?;
        let mut extended = self.clone();
        extended.sources.extend(file.source);
        for entry in file.workload {
            extended.insert(entry.check()?)?;
        }
        *self = extended;
        Ok(())
    }

    /// The same with workloads that jobs may name. Traces that are generated or mapped by a seed do not depend on them.
    pub fn extend_named_only(&mut self, text: &str) -> Result<(), CatalogueError> {
        let before = self.workloads.len();
        self.extend(text)?;
        self.named_only.extend((before..self.workloads.len()).map(WorkloadId));
        Ok(())
    }

    /// A catalogue of workloads from one source.
    pub fn measured_by(source: &str, workloads: impl IntoIterator<Item = Workload>) -> Result<Self, CatalogueError> {
        let mut catalogue = Self { sources: BTreeMap::from([(source.to_owned(), source.to_owned())]), ..Self::default() };
        workloads.into_iter().try_for_each(|workload| catalogue.insert(Workload { source: source.to_owned(), ..workload }))?;
        Ok(catalogue)
    }

    pub(super) fn insert(&mut self, workload: Workload) -> Result<(), CatalogueError> {
        if !self.sources.contains_key(&workload.source) {
            return Err(CatalogueError::UnknownSource { workload: workload.name, key: workload.source });
        }
        let id = WorkloadId(self.workloads.len());
        for name in std::iter::once(&workload.name).chain(&workload.aliases) {
            if let Some(taken) = self.names.insert(name.clone(), id) {
                let first = if taken == id { workload.name.clone() } else { self.get(taken).name.clone() };
                return Err(CatalogueError::NameTaken { name: name.clone(), first, second: workload.name });
            }
        }
        self.workloads.push(workload);
        Ok(())
    }
}
