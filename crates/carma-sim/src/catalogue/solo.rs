//! A catalogue from a table of solo measurements.

use std::collections::BTreeMap;
use std::io::Read;

use carma_core::{Fraction, MiB, OutOfRange, Seconds, Watts};
use serde::Deserialize;

use super::{Catalogue, CatalogueError, RankProfile, Workload};
use crate::tables;

#[derive(Deserialize)]
struct Row {
    workload: String,
    gpu_rank: usize,
    end_to_end_s: f64,
    peak_mib: u64,
    gpu_util_pct: Option<f64>,
    smact: Option<f64>,
    smocc: Option<f64>,
    drama: Option<f64>,
    #[serde(default)]
    power_w: Option<f64>,
}

impl Row {
    /// Unset if counters are missing.
    fn profile(&self) -> Result<Option<RankProfile>, OutOfRange> {
        let (Some(smact), Some(smocc), Some(drama), Some(percent)) = (self.smact, self.smocc, self.drama, self.gpu_util_pct) else {
            return Ok(None);
        };
        Ok(Some(RankProfile {
            peak: MiB(self.peak_mib),
            smact: Fraction::new(smact)?,
            smocc: Fraction::new(smocc)?,
            drama: Fraction::new(drama)?,
            utilisation: Fraction::new(percent / 100.0)?,
            power: self.power_w.map(Watts),
        }))
    }
}

impl Catalogue {
    /// Reads `workload,gpu_rank,end_to_end_s,peak_mib,gpu_util_pct,smact,smocc,drama,power_w`, one row per rank in order. Skips rows with no
    /// counters. The family is the part of the name before its batch size.
    pub fn from_solo(table: impl Read) -> Result<Self, CatalogueError> {
        let mut catalogue =
            Self { sources: BTreeMap::from([("solo".to_owned(), "a table of measurements alone".to_owned())]), ..Self::default() };
        let mut workloads: Vec<Workload> = Vec::new();
        let rows: Vec<(u64, Row)> = tables::rows(table).map_err(|error| CatalogueError::Table(error.to_string()))?;
        for (line, row) in rows {
            let invalid = |error: OutOfRange| CatalogueError::Table(format!("line {line}: {}: {error}", row.workload));
            let Some(profile) = row.profile().map_err(invalid)? else { continue };
            let zero = row.peak_mib == 0 || row.end_to_end_s <= 0.0 || row.power_w.is_some_and(|watts| !(0.0..=10_000.0).contains(&watts));
            if zero {
                return Err(CatalogueError::Table(format!("line {line}: {}: time, memory and power must be more than 0", row.workload)));
            }
            if row.gpu_rank > 0 {
                workloads.iter_mut().filter(|workload| workload.name == row.workload).for_each(|workload| workload.ranks.push(profile));
                continue;
            }
            let seconds = Seconds::new(row.end_to_end_s).map_err(invalid)?;
            workloads.push(Workload {
                model: row.workload.clone(),
                dataset: String::new(),
                batch: None,
                epochs: None,
                family: row.workload.split("_bs").next().unwrap_or_default().to_owned(),
                seconds,
                ranks: vec![profile],
                aliases: Vec::new(),
                source: "solo".to_owned(),
                note: None,
                name: row.workload,
            });
        }
        if workloads.is_empty() {
            return Err(CatalogueError::Table("no row has counters".to_owned()));
        }
        workloads.into_iter().try_for_each(|workload| catalogue.insert(workload))?;
        Ok(catalogue)
    }
}
