//! `carma estimator train` and `predict`: weights of the learned estimators.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use carma_estimate::estimators::Estimator;
use carma_learn::data::{self, Observation};
use carma_learn::{replayed_transformers, train_all};
use clap::Args;

use super::evaluate;
use super::machine::Machine;
use crate::progress::{bar, with_spinner};
use crate::{estimate, files};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator train memory_mlp.csv memory_cnn_random.csv -o weights")]
pub(crate) struct Arguments {
    /// Data sets: random MLPs, CNNs and Transformers
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Seed of the training
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the weights
    #[arg(short, long)]
    output: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator predict cnn.csv --estimator gpumemnet-mlp")]
pub(crate) struct PredictArguments {
    /// A data set
    data: PathBuf,
    /// The estimator
    #[arg(long, value_parser = estimate::estimator, default_value = "gpumemnet-mlp")]
    estimator: Estimator,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut rows: Vec<Observation> = Vec::new();
    for file in &arguments.data {
        rows.extend(files::read_table(file, data::read)?);
    }
    // Few Transformers have been measured: most training data of the classifiers is generated, and labelled by the static estimator.
    rows.extend(with_spinner("drawing networks", replayed_transformers));
    let bar = bar(0, "training");
    let files = train_all(&rows, arguments.seed, &|all| bar.step_of(all)).context("the weights cannot be written");
    drop(bar);
    let files = files?;
    if files.is_empty() {
        bail!("no row to learn from");
    }
    fs::create_dir_all(&arguments.output).with_context(|| format!("cannot create {}", arguments.output.display()))?;
    for weights in files {
        let file = arguments.output.join(&weights.file);
        fs::write(&file, &weights.text).with_context(|| format!("cannot write {}", file.display()))?;
        writeln!(output, "{} ({} bytes)", file.display(), weights.text.len())?;
    }
    Ok(())
}

pub(super) fn predict(arguments: &PredictArguments, output: &mut impl Write) -> Result<()> {
    let rows = files::read_table(&arguments.data, data::read)?;
    let mut table = csv::Writer::from_writer(output);
    table.write_record(["name", "batch", "measured_mib", "memory_mib", "upper_mib"])?;
    for row in rows {
        let Some(model) = row.model() else { continue };
        let training = row.training();
        let machine = Machine::of(&row);
        let question = evaluate::question(Some(&model), &training, None, &machine);
        let answered = estimate::answer(arguments.estimator, &question);
        let (answer, upper) = answered.result.with_context(|| arguments.estimator.name())?;
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / evaluate::MIB);
        let measured = row.measured.map(|measured| format!("{measured:.0}")).unwrap_or_default();
        table.write_record([row.name.clone(), row.batch.to_string(), measured, mib(answer.bytes), mib(upper)])?;
    }
    table.flush()?;
    Ok(())
}
