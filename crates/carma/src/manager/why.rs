//! `carma why`: why a job waits.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::common::{JOB_NAMES, JobArguments, write_json};
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES}\n\nExamples:\n  carma why\n  carma why 12_3"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
}

pub(super) fn run(Arguments { job: JobArguments { job, answer } }: &Arguments, output: &mut impl Write) -> Result<()> {
    let why = answer.manager.connect()?.why(job)?;
    if answer.json {
        return write_json(&why, output);
    }
    Ok(why.text.lines().try_for_each(|line| writeln!(output, "{}", printable(line)))?)
}
