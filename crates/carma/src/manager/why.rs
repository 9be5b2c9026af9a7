//! `carma why`: why a job waits.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::ask::{NAMING, OneJob, write_json};
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = NAMING)]
pub(crate) struct Arguments {
    #[command(flatten)]
    question: OneJob,
}

pub(super) fn run(Arguments { question }: &Arguments, output: &mut impl Write) -> Result<()> {
    let why = question.manager.connect()?.why(&question.job)?;
    if question.json {
        return write_json(&why, output);
    }
    Ok(why.text.lines().try_for_each(|line| writeln!(output, "{}", printable(line)))?)
}
