//! `carma estimator bounds`: the basis of the upper bounds, each estimator's record on measured runs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use carma_estimate::Family;
use carma_estimate::confidence::Record;
use carma_estimate::estimators::Estimator;
use carma_learn::record;
use clap::Args;

use super::evaluate::{RowArguments, evaluate_rows};
use crate::estimate;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Measured runs
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Estimators to record; those that learn bring bounds of their own
    #[arg(long, value_parser = estimate::estimator, value_delimiter = ',', required = true)]
    estimators: Vec<Estimator>,
    #[command(flatten)]
    rows: RowArguments,
    /// The file to write
    #[arg(short, long)]
    output: PathBuf,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let mut answers: BTreeMap<(Estimator, Family), Vec<(f64, f64)>> = BTreeMap::new();
    for file in &arguments.data {
        let rows = arguments.rows.read(file)?;
        for &estimator in &arguments.estimators {
            let evaluated = match evaluate_rows(&arguments.rows, estimator, file, &rows) {
                Ok(evaluated) => evaluated,
                Err(reason) => {
                    eprintln!("carma: {estimator} has nothing to say of {}: {reason:#}", file.display());
                    continue;
                }
            };
            for row in evaluated.iter().filter(|row| !row.answer.crashed) {
                if let (Some(family), Some(measured)) = (row.family, row.answer.measured) {
                    answers.entry((estimator, family)).or_default().push((row.answer.point, measured));
                }
            }
        }
    }
    let records: Vec<Record> = answers.iter().filter_map(|((estimator, family), answers)| record(*estimator, *family, answers)).collect();
    for record in &records {
        let (likely, most) = (record.ratio(0.5), record.ratio(0.95));
        writeln!(
            output,
            "{:<12} {:<12} {:>5} rows: median x{likely:.3}, 95 % x{most:.3}",
            record.estimator,
            format!("{:?}", record.family),
            record.rows
        )?;
    }
    fs::write(&arguments.output, serde_json::to_string_pretty(&records)? + "\n")
        .with_context(|| format!("cannot write {}", arguments.output.display()))
}
