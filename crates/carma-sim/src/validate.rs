//! Measured runs of whole traces, and the settings to simulate them with.

use std::io::Read;

use carma_core::{Preset, Rung, Settings};
use serde::{Deserialize, Serialize};

use crate::tables::{self, TableError};

/// A measured run of a whole trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRun {
    /// Name of the policy in the table.
    pub policy: String,
    /// Seconds from the first submission to the last end.
    #[serde(rename = "makespan_s")]
    pub makespan: f64,
    /// Mean seconds from submission to end.
    #[serde(rename = "mean_jct_s")]
    pub mean_jct: f64,
    /// 95th percentile of the completion times.
    #[serde(rename = "p95_jct_s")]
    pub p95_jct: f64,
    /// Mean run time in seconds.
    #[serde(rename = "mean_exec_s")]
    pub mean_execution: f64,
    /// Attempts that ran out of memory.
    pub oom_attempts: f64,
    /// Energy relative to exclusive, if measured.
    #[serde(rename = "energy_vs_exclusive", default)]
    pub energy_ratio: Option<f64>,
}

/// How a measured policy is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPolicy {
    /// The scheduler's settings.
    pub settings: Settings,
    /// Estimator that the run used; unset: measured peaks.
    pub estimator: Option<String>,
    /// Whether the utilisation screen was on.
    pub screened: bool,
}

impl MeasuredPolicy {
    /// Parses a name like `OR-MAGM`, `EST-MAGM horus` or `OR-LUG no thresholds`.
    ///
    /// The settings are those of the preset `aegis`, except for recovery: in the measured run with per-job data, each job that ran out of
    /// memory restarted on an idle GPU, although another GPU had more than three quarters of its memory free and little load.
    pub fn parse(name: &str) -> Result<Self, String> {
        let (base, unscreened) = name.strip_suffix(" no thresholds").map_or((name, false), |base| (base, true));
        let (policy, estimator) = base.split_once(' ').map_or((base, None), |(policy, estimator)| (policy, Some(estimator.to_owned())));
        let mut settings = Settings { preset: Some(Preset::Aegis), policy: Some(policy.to_lowercase()), ..Settings::default() };
        settings.recovery.get_or_insert_default().ladder = Some(vec![Rung::WholeGpu]);
        if unscreened {
            settings.screen.get_or_insert_default().enabled = Some(false);
        }
        let config = settings.check().map_err(|error| error.to_string())?;
        let screened = config.screen.enabled && config.mapping.policy.screened || !config.mapping.policy.shares;
        Ok(Self { settings, estimator, screened })
    }
}

/// Reads measured runs: `policy,makespan_s,mean_jct_s,p95_jct_s,mean_exec_s,oom_attempts,energy_vs_exclusive`. Ignores other columns.
pub fn read_measured(table: impl Read) -> Result<Vec<(MeasuredRun, MeasuredPolicy)>, TableError> {
    let mut runs = Vec::new();
    for (line, run) in tables::rows::<MeasuredRun>(table)? {
        let values = [run.makespan, run.mean_jct, run.p95_jct, run.mean_execution].into_iter().chain(run.energy_ratio);
        let wrong =
            values.filter(|value| !(value.is_finite() && *value > 0.0)).chain(Some(run.oom_attempts).filter(|value| !value.is_finite()));
        if let Some(wrong) = wrong.into_iter().next() {
            return Err(TableError::Row { line, problem: format!("{wrong} is not a number above 0") });
        }
        let policy = MeasuredPolicy::parse(&run.policy).map_err(|problem| TableError::Row { line, problem })?;
        runs.push((run, policy));
    }
    if runs.iter().any(|(run, _)| run.policy.eq_ignore_ascii_case("exclusive")) {
        Ok(runs)
    } else {
        Err(TableError::Missing("a row Exclusive is missing, with which the others are compared"))
    }
}
