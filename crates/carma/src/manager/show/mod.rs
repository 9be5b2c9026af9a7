//! `carma show`: all facts about a job.

mod array;
mod blocks;
#[cfg(test)]
mod fixtures;

pub(crate) use blocks::write;
#[cfg(test)]
pub(crate) use fixtures::sample;

use std::io::Write;

use anyhow::Result;
use clap::Args;
use jiff::tz::TimeZone;

use super::common::{JOB_NAMES, JobArguments, members, now, whole_array, write_json};

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array shows how many of its jobs are in each state.\n\nExamples:\n  carma show last\n  carma show 12_3 --json | jq .estimate"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobArguments,
}

pub(super) fn run(Arguments { job: JobArguments { job, answer } }: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut answer.manager.connect()?;
    let detail = client.job(job)?;
    if answer.json {
        return write_json(&detail, output);
    }
    let jobs = whole_array(job, &detail).map(|array| members(client, array)).transpose()?.unwrap_or_default();
    if jobs.len() > 1 {
        return Ok(array::write(&jobs, output)?);
    }
    Ok(write(&detail, now(client)?, &TimeZone::system(), output)?)
}
