//! `carma replay --emulated`: each policy under a manager of its own on emulated GPUs, beside the range that the simulator predicts.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Result, bail};
use carma_core::Settings;
use carma_format::{count, wrapped};
use carma_manager::api::{TimedUpdate, Update};
use carma_manager::store::Phase;
use carma_manager::submission::Caller;
use carma_sim::{Servers, Trace};
use serde::Serialize;

use super::Figures;
use super::emulated::{EmulatedManager, RunUpdate, STOPPED, stopped_by_signals};
use super::plan::Training;
use super::prediction::{SEEDS, simulated_runs};
use super::table::{self, Column};
use crate::configuration::policy_settings;
use crate::manager::write_json;
use crate::progress::bar;
use crate::submit::caller;

/// Interval of checks for a stop signal.
const POLL: Duration = Duration::from_millis(200);

/// The jobs, the GPUs, and how often each policy runs.
pub(super) struct SideBySide<'a> {
    pub(super) name: &'a str,
    pub(super) trace: &'a Trace,
    pub(super) training: Training<'a>,
    pub(super) servers: &'a Servers,
    pub(super) speed: f64,
    pub(super) runs: u64,
}

/// Runs of one policy.
#[derive(Debug, Serialize)]
struct PolicyRuns {
    policy: String,
    measured: Vec<Figures>,
    simulated: Vec<Figures>,
}

impl SideBySide<'_> {
    /// Runs every policy, and prints what was measured and what is predicted.
    pub(super) fn run(&self, policies: &[String], json: bool, output: &mut impl Write) -> Result<()> {
        let settings = policies.iter().map(|policy| policy_settings(policy, &Settings::default())).collect::<Result<Vec<_>>>()?;
        let stopped = stopped_by_signals()?;
        let mut results = Vec::new();
        for (policy, settings) in policies.iter().zip(&settings) {
            let Training { catalogue, estimator, .. } = self.training;
            let simulated = simulated_runs(catalogue, self.trace, self.servers, settings, estimator)?;
            let simulated = simulated.iter().map(|run| (&run.summary()).into()).collect();
            let measured = (0..self.runs).map(|run| self.measure((policy, settings), run, &stopped)).collect::<Result<_>>()?;
            results.push(PolicyRuns { policy: policy.clone(), measured, simulated });
        }
        if json {
            return write_json(
                &serde_json::json!({
                    "trace": self.name, "jobs": self.trace.jobs.len(), "servers": self.servers.to_string(), "speed": self.speed,
                    "policies": results, "carma": env!("CARGO_PKG_VERSION"),
                }),
                output,
            );
        }
        self.print(&results, output)
    }

    /// One run of a policy. The same run of another policy has jobs with the same draws.
    fn measure(&self, (policy, settings): (&str, &Settings), run: u64, stopped: &AtomicBool) -> Result<Figures> {
        let manager = EmulatedManager::start(self.servers, self.speed, settings, None)?;
        let caller = Caller { directory: manager.folder().to_owned(), ..caller()? };
        let seed = self.training.seed + run * self.trace.jobs.len() as u64;
        let planned = Training { seed, ..self.training }.plan(self.trace, &caller)?;
        let progress = bar(planned.len(), &format!("{policy}, run {} of {}: finished jobs", run + 1, self.runs));
        let (sender, updates) = channel();
        manager.replay(planned, self.speed, move |update| drop(sender.send(update)))?;
        while !stopped.load(Ordering::Relaxed) {
            match updates.recv_timeout(POLL) {
                Ok(RunUpdate::Finished(replayed)) => {
                    return replayed.as_ref().map(Figures::from).map_err(|error| anyhow::anyhow!("{error:#}"));
                }
                Ok(RunUpdate::Job(TimedUpdate { update: Update::Job { state: Phase::Done, .. }, .. })) => progress.step(),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the replay ended without a result"),
            }
        }
        bail!(STOPPED)
    }

    fn print(&self, results: &[PolicyRuns], output: &mut impl Write) -> Result<()> {
        let (jobs, runs) = (count(self.trace.jobs.len(), "job"), count(self.runs as usize, "run"));
        writeln!(output, "{}: {jobs} on {}; {runs} of each policy", self.name, self.servers)?;
        let first = results.first().map(|first| Figures::mean(&first.measured));
        let mut outside = Vec::new();
        for PolicyRuns { policy, measured, simulated } in results {
            let (measured, mean) = (Figures::mean(measured), Figures::mean(simulated));
            let [least, most] = [f64::min, f64::max].map(|pick| Figures::folded(simulated, |values| values.fold(f64::NAN, pick)));
            writeln!(output, "\n{policy}")?;
            table::write(
                [
                    Column::Names,
                    Column::Run("measured", &measured),
                    Column::Run("simulated", &mean),
                    Column::Run("least", &least),
                    Column::Run("most", &most),
                    Column::Ratio(&measured, first.as_ref().unwrap_or(&measured)),
                ],
                output,
            )?;
            let figures = table::outside(&measured, (&least, &most));
            if !figures.is_empty() {
                outside.push(format!("{policy}: {}", figures.join(", ")));
            }
        }
        let first = results.first().map_or("", |first| first.policy.as_str());
        let means = if self.runs == 1 { "one run" } else { "the mean of the runs" };
        let about = format!(
            "measured: {means}, by training-like processes under a manager on emulated GPUs, with time {} times faster than real time. simulated: \
             the mean, the least and the most of {SEEDS} seeds. ratio: measured, against {first}.",
            self.speed
        );
        writeln!(output, "\n{}", wrapped(&about))?;
        if outside.is_empty() {
            writeln!(output, "\nAll measured figures are within the simulated range.")?;
        }
        outside.iter().try_for_each(|outside| writeln!(output, "\n{}", wrapped(&format!("Outside the simulated range, {outside}."))))?;
        Ok(())
    }
}
