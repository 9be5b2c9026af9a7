//! `carma why`: what a job waits for.

use std::io::Write;

use anyhow::Result;
use clap::Args;

use super::ask::{Manager, NAMING, write_json};
use crate::text::printable;

#[derive(Debug, Args)]
#[command(after_help = NAMING)]
pub(crate) struct Arguments {
    /// The job.
    #[arg(default_value = "last")]
    job: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let why = arguments.manager.connect()?.why(&arguments.job)?;
    if arguments.json {
        return write_json(&why, output);
    }
    Ok(why.text.lines().try_for_each(|line| writeln!(output, "{}", printable(line)))?)
}
