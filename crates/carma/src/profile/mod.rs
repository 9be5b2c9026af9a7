//! `carma profile`: runs jobs alone and together on one GPU, and writes the input of `carma calibrate`.

mod jobs;
mod plan;
mod report;
mod reserve;
mod results;
mod run;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::gpus::{choose_whole, find};
use crate::manager::Manager;
use carma_format::clock;
use jobs::Job;
use plan::{Mode, Run, plan};
use reserve::Reserved;
use results::{Outcome, Results};
use run::Bench;

#[derive(Debug, Args)]
#[command(after_help = "\
A job list is a TOML file:\n\n  [[job]]\n  name = \"resnet50_bs64\"\n  command = \"python train.py --batch-size 64\"\n  \
directory = \"/home/ada/vision\"\n\n\
If a manager runs, it starts no new jobs on the GPU meanwhile. The profile waits \
until the present jobs have ended. Each result is saved at once; --resume continues \
an interrupted profile.\n\n\
Examples:\n  carma profile jobs.toml --pairs --copies 3\n  carma calibrate --solo profile/solo.csv --pairs profile/pairs-streams.csv")]
pub(crate) struct Arguments {
    /// A job list (TOML), or workloads of the catalogue on emulated GPUs.
    #[arg(required = true, value_name = "FILE|WORKLOAD")]
    jobs: Vec<String>,
    /// Run each job alone, and no combinations.
    #[arg(long, conflicts_with_all = ["pairs", "copies"])]
    alone: bool,
    /// Run each pair of jobs, and each job with itself. This is the default.
    #[arg(long)]
    pairs: bool,
    /// Run up to this many copies of each job, started one after another.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(2..=48))]
    copies: Option<u16>,
    /// How jobs share the GPU.
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = "streams")]
    modes: Vec<Mode>,
    /// The GPU: its number in `carma gpus`, or its UUID.
    #[arg(long, default_value = "0")]
    gpu: String,
    /// The folder for results.
    #[arg(long, short, value_name = "FOLDER", default_value = "profile")]
    output: PathBuf,
    /// Continue an interrupted profile.
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    manager: Manager,
}

pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let (driver, world) = find()?;
    let inventory = driver.inventory()?;
    let gpu = choose_whole(&inventory, &arguments.gpu)?.clone();
    let jobs: BTreeMap<String, Job> = jobs::read(&arguments.jobs, &world)?;
    let names: Vec<String> = jobs.keys().cloned().collect();
    let pairs = arguments.pairs || !(arguments.alone || arguments.copies.is_some());
    let planned = plan(&names, pairs, arguments.copies.unwrap_or(1), &arguments.modes);
    let mut results = Results::open(&arguments.output, arguments.resume)?;
    let left: Vec<Run> = planned.into_iter().filter(|run| !results.has(run)).collect();
    if !left.is_empty() {
        let _reserved = Reserved::take(&arguments.manager, &gpu.uuid)?;
        let mut bench = Bench::new(driver, world, gpu)?;
        for (place, run) in left.iter().enumerate() {
            let outcome = bench.run(run, &jobs)?;
            eprintln!("carma: {}/{} {run}: {outcome}{}", place + 1, left.len(), remaining(&left[place + 1..], &results, bench.speed()));
            results.keep(run.clone(), outcome)?;
        }
    }
    results.write_tables()?;
    report::write(&results, output)
}

/// Approximate remaining time, if known.
fn remaining(left: &[Run], results: &Results, speed: f64) -> String {
    let known: Vec<f64> = results.alone().into_values().collect();
    if left.is_empty() || known.is_empty() {
        return String::new();
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let alone = |job: &String| results.alone().get(job).copied().unwrap_or(mean);
    // Assumes no gain from sharing.
    let seconds: f64 = left.iter().flat_map(|run| run.jobs.iter().map(alone)).sum();
    format!("; at most {} left", clock(seconds / speed))
}

impl Outcome {
    fn seconds(&self) -> Option<&[f64]> {
        match self {
            Self::Took { seconds, .. } => Some(seconds),
            Self::Failed { .. } => None,
        }
    }
}
