//! `carma estimator learn`: what the measured peaks of a manager's jobs say about the estimates on its GPUs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use carma_core::{DeviceId, MiB, Verdict};
use carma_estimate::calibration::{Calibration, Calibrations, Sample};
use carma_estimate::gpu::Gpu;
use carma_estimate::stack::{Evidence, Stack};
use carma_format::{left, right, write_table};
use carma_manager::api::{GpuDetail, HistoryQuery, JobDetail, uncorrected};
use clap::Args;
use serde_json::json;

use crate::manager::{Manager, Moment, write_json};
use crate::progress;

#[derive(Debug, Args)]
#[command(after_help = "\
A running manager learns by itself, by the same rules, from every job that \
succeeds. The file of -o is for `carma estimate --stack`.\n\n\
Examples:\n  carma estimator learn\n  carma estimator learn --since 30d -o lab.toml")]
pub(crate) struct Arguments {
    /// Jobs submitted since this time: 30d, 12h or 2027-01-31
    #[arg(long, value_name = "TIME", default_value = "90d")]
    since: Moment,
    /// Write a software stack with the learned context to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: Manager,
}

/// The measured jobs as samples.
pub(crate) fn calibrations<'a>(jobs: impl IntoIterator<Item = &'a JobDetail>, gpus: &[GpuDetail]) -> Calibrations {
    let names: BTreeMap<DeviceId, &str> = gpus.iter().map(|gpu| (gpu.device, gpu.name.as_str())).collect();
    let mut all = Calibrations::default();
    for sample in jobs.into_iter().filter_map(|job| sample(job, &names)) {
        all.add(sample);
    }
    all
}

fn sample(job: &JobDetail, names: &BTreeMap<DeviceId, &str>) -> Option<Sample> {
    let ran = job.attempts.iter().rfind(|attempt| attempt.verdict == Some(Verdict::Succeeded))?;
    let gpu = (*names.get(&ran.placement.devices.first()?.device)?).to_owned();
    let measured = ran.peaks.iter().copied().max().filter(|peak| *peak > MiB::ZERO)?;
    let (expected, workspace) = uncorrected(&job.estimate.parts)?;
    Some(Sample { estimator: job.estimate.source.clone()?, gpu, expected, workspace, measured })
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let now = client.status()?.now;
    let query = HistoryQuery { since: Some(arguments.since.at(now)), ..HistoryQuery::default() };
    let jobs: Vec<JobDetail> = progress::collect_counted("reading jobs", client.export(&query)?)?;
    let learned = calibrations(&jobs, &client.gpus()?);
    if learned.all().next().is_none() {
        bail!("no job since then has both an estimate by dry run or description and a measured peak");
    }
    if arguments.json {
        let rows: Vec<_> =
            learned.all().map(|(estimator, gpu, found)| json!({ "estimator": estimator, "gpu": gpu, "learned": found })).collect();
        write_json(&json!(rows), output)?;
    } else {
        show(&learned, output)?;
    }
    match &arguments.output {
        None => Ok(()),
        Some(file) => {
            fs::write(file, Stack::write(stacks(&learned))).with_context(|| format!("cannot write {}", file.display()))?;
            writeln!(output, "written to {}: use it with --stack {}", file.display(), file.display()).map_err(Into::into)
        }
    }
}

fn show(learned: &Calibrations, output: &mut impl Write) -> Result<()> {
    let columns = [
        left("estimator", 9),
        left("GPU", 26),
        right("jobs", 5),
        right("context", 10),
        right("workspace", 9),
        right("bound", 6),
        right("error", 15),
    ];
    let cells = |(estimator, gpu, found): (&str, &str, Calibration)| {
        [
            estimator.to_owned(),
            gpu.to_owned(),
            found.samples.to_string(),
            format!("{:+.0} MiB", found.context),
            format!("x {:.2}", found.workspace),
            found.bound.map_or_else(|| "-".to_owned(), |bound| format!("x {bound:.2}")),
            format!("{:.1} -> {:.1} %", found.error_before * 100.0, found.error_after * 100.0),
        ]
    };
    write_table(columns, &learned.all().map(cells).collect::<Vec<_>>(), output)?;
    writeln!(output, "context and workspace: corrections; bound: 95 % of jobs stay below; error: median before -> after")?;
    Ok(())
}

/// A stack for each kind of GPU, with the context that was learned there; the one with most jobs first.
fn stacks(learned: &Calibrations) -> Vec<Stack> {
    let base = &Stack::built_in()[0];
    let mut found: Vec<(usize, Stack)> = learned
        .all()
        .map(|(_, gpu, calibration)| {
            let stack = Gpu::named(gpu).map_or_else(|| base.clone(), |gpu| base.on(gpu));
            let context = (stack.context + calibration.context).max(0.0);
            let description = format!("{gpu}, learned from {} jobs", calibration.samples);
            (calibration.samples, Stack { name: "learned".to_owned(), description, evidence: Evidence::Calibrated, context, ..stack })
        })
        .collect();
    found.sort_by_key(|(samples, _)| std::cmp::Reverse(*samples));
    found.into_iter().map(|(_, stack)| stack).collect()
}
