//! `carma estimator bounds`: the basis of the upper bounds, each estimator's record on measured runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_estimate::Family;
use carma_estimate::confidence::Record;
use carma_estimate::estimators::Estimator;
use carma_estimate::stack::Kernels;
use carma_learn::{Outcome, record};
use clap::Args;

use super::evaluate::{RowArguments, evaluate_rows};
use crate::estimate;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma estimator bounds memory_timm.csv --estimators dry-run,static -o records.json")]
pub(crate) struct Arguments {
    /// Files with measured runs
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Estimators to record; learned ones have their own bounds
    #[arg(long, value_parser = estimate::estimator, value_delimiter = ',', required = true)]
    estimators: Vec<Estimator>,
    #[command(flatten)]
    rows: RowArguments,
    /// The file to write; it keeps records of other estimators
    #[arg(short, long)]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut answers: BTreeMap<(Estimator, Family, Kernels), Vec<Outcome>> = BTreeMap::new();
    for file in &arguments.data {
        let rows = arguments.rows.read(file)?;
        for &estimator in &arguments.estimators {
            let evaluated = match evaluate_rows(&arguments.rows, estimator, file, &rows) {
                Ok(evaluated) => evaluated,
                Err(reason) => {
                    eprintln!("carma: {estimator} has no estimate for {}: {reason:#}", file.display());
                    continue;
                }
            };
            for row in evaluated.iter().filter(|row| !row.answer.crashed) {
                if let (Some(family), Some(measured)) = (row.family, row.answer.measured) {
                    // Kernels differ in convolutions only.
                    let kernels = if family == Family::Cnn { row.kernels } else { Kernels::default() };
                    answers.entry((estimator, family, kernels)).or_default().push(Outcome {
                        estimated: row.answer.point,
                        doubt: row.doubt,
                        measured,
                    });
                }
            }
        }
    }
    let records: Vec<Record> =
        answers.iter().filter_map(|((estimator, family, kernels), answers)| record(*estimator, *family, *kernels, answers)).collect();
    for record in &records {
        let (likely, most) = (record.error(0.5), record.error(0.95));
        writeln!(
            output,
            "{:<12} {:<12} {:>5} rows: median {likely:+.3}, 95 % {most:+.3} of what is in doubt",
            record.estimator,
            format!("{:?}{}", record.family, if record.kernels.is_default() { "" } else { " plain" }),
            record.rows
        )?;
    }
    let mut all = others(arguments)?;
    all.extend(records);
    fs::write(&arguments.output, serde_json::to_string_pretty(&all)? + "\n")
        .with_context(|| format!("cannot write {}", arguments.output.display()))
}

/// Records of estimators that were not asked for, from the file that is there.
fn others(arguments: &Arguments) -> Result<Vec<Record>> {
    let Ok(text) = fs::read_to_string(&arguments.output) else { return Ok(Vec::new()) };
    let mut records: Vec<Record> =
        serde_json::from_str(&text).with_context(|| format!("{} is not a file of records", arguments.output.display()))?;
    records.retain(|record| !arguments.estimators.contains(&record.estimator));
    Ok(records)
}
