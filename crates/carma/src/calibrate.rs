//! `carma calibrate`: interference constants from a server's own measurements.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_format::{aligned, count, labelled};
use carma_sim::{Calibration, Catalogue, Scored, calibrate_watched, read_crowds, read_pairs};

use crate::files::{read_observations, read_table};
use crate::origin::{comments, origin};
use crate::progress::bar;

/// What the model is fitted to.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  carma calibrate --solo profile/solo.csv --pairs profile/pairs-streams.csv -o constants.toml")]
pub(crate) struct Arguments {
    /// Measurements of workloads alone: CSV with `workload`, `gpu_rank`, `end_to_end_s`, `peak_mib`, `gpu_util_pct`, `smact`, `smocc`,
    /// `drama` and `power_w`.
    #[arg(long, value_name = "FILE")]
    solo: PathBuf,
    /// Measurements of two jobs started together on one GPU: CSV with `a`, `b`, `solo_a_s`, `solo_b_s`, `pair_a_s` and `pair_b_s`.
    #[arg(long, value_name = "FILE")]
    pairs: PathBuf,
    /// Measurements of groups of jobs started one after another on one GPU: CSV with `trial`, `jobs`, `solo_s` and `mean_slowdown`.
    #[arg(long, value_name = "FILE")]
    crowds: Option<PathBuf>,
    /// Write the constants to this file, for --interference.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Fits, reports the quality of the fit, and writes the constants.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let catalogue = read_table(&arguments.solo, Catalogue::from_solo)?;
    let pairs = read_observations(&arguments.pairs, |table| read_pairs(table, &catalogue))?;
    let trials = arguments
        .crowds
        .as_deref()
        .map(|file| read_observations(file, |table| read_crowds(table, &catalogue)))
        .transpose()?
        .unwrap_or_default();
    let bar = bar(0, "fitting");
    let calibration = calibrate_watched(&pairs, &trials, &catalogue, |all| bar.step_of(all));
    drop(bar);
    let Calibration { model, fitted, held_out, crowds } = calibration;
    let (rows, workloads) = (count(pairs.len(), "pair"), count(model.workloads.len(), "workload"));
    writeln!(output, "{rows} of {workloads}; mean absolute error of their times:")?;
    let mut line = |what: &str, share: f64| {
        let share = aligned(&format!("{:.1} %", 100.0 * share), 7);
        writeln!(output, "{}", labelled(&format!("  {what}"), 37, &share))
    };
    line("on what it was fitted to", fitted)?;
    line("with a tenth of the pairs left out", held_out.rows)?;
    line("with each workload left out", held_out.workloads)?;
    line("with each family left out", held_out.families)?;
    for (trial, Scored { measured, predicted }) in trials.iter().zip(&crowds) {
        writeln!(output, "{}: mean slowdown {measured:.2} measured, {predicted:.2} fitted", trial.name)?;
    }
    if let Some(file) = &arguments.output {
        let files = [Some(&arguments.solo), Some(&arguments.pairs), arguments.crowds.as_ref()];
        let roles = ["solo", "pairs", "crowds"].into_iter().zip(files);
        let origin = origin(roles.filter_map(|(role, file)| Some((role, file?.as_path()))))?;
        let written = format!("{}\n{}", comments(&origin), toml::to_string(&model)?);
        fs::write(file, written).with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("carma: wrote {}", file.display());
    }
    Ok(())
}
