//! `carma show`: all facts about a job.

mod blocks;

pub(crate) use blocks::write;

use std::io::Write;

use anyhow::Result;
use clap::Args;
use jiff::tz::TimeZone;

use super::ask::{NAMING, OneJob, now, write_json};

#[derive(Debug, Args)]
#[command(after_help = format!("{NAMING}\n\nExamples:\n  carma show last\n  carma show 12_3 --json | jq .estimate"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    question: OneJob,
}

pub(super) fn run(Arguments { question }: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut question.manager.connect()?;
    let job = client.job(&question.job)?;
    if question.json {
        return write_json(&job, output);
    }
    Ok(write(&job, now(client)?, &TimeZone::system(), output)?)
}

#[cfg(test)]
pub(crate) use blocks::tests::sample;
