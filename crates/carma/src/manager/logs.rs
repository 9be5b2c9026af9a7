//! `carma logs`: the output of a job.

use std::io::{Read, Write};

use anyhow::{Context, Result};
use carma_manager::api::{JobDetail, LogQuery, LogStream};
use carma_manager::client::Client;
use clap::Args;

use super::common::{JOB_NAMES, Manager, whole_array};
use super::started::until_started;
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES}\n\nBoth streams are printed in the order in which they were written. Of a long log, the beginning and the end are kept.\n\n\
Examples:\n  carma logs -f last\n  carma logs -n 20 --stderr @train\n  carma logs 12 --attempt 1"))]
pub(crate) struct Arguments {
    /// The job.
    #[arg(default_value = "last")]
    job: String,
    /// Continue until the job ends, over all attempts, and print how it ended.
    #[arg(short, long)]
    follow: bool,
    /// Only standard error.
    #[arg(long)]
    stderr: bool,
    /// Only standard output.
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// The number of the attempt, from 1 [default: the last].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// Only the last N lines.
    #[arg(short = 'n', long, value_name = "NUMBER")]
    lines: Option<u32>,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let stream = match (arguments.stdout, arguments.stderr) {
        (true, _) => LogStream::Stdout,
        (_, true) => LogStream::Stderr,
        _ => LogStream::Both,
    };
    let query = LogQuery { stream, attempt: arguments.attempt, lines: arguments.lines, follow: arguments.follow };
    let detail = client.job(&arguments.job)?;
    if whole_array(&arguments.job, &detail).is_some() {
        eprintln!(
            "carma: this is the first job of the array, {}; carma show {} lists all",
            detail.label().short(),
            printable(&arguments.job)
        );
    }
    if arguments.follow {
        return follow(client, &arguments.job, query, output);
    }
    print(client, &arguments.job, query, output)
}

/// Prints until the job, or the requested attempt, is over.
fn follow(client: &mut Client, job: &str, mut query: LogQuery, output: &mut impl Write) -> Result<()> {
    let detail = client.job(job)?;
    let (label, id, attempts) = (detail.label(), detail.id, detail.attempts);
    let (name, only) = (id.0.to_string(), query.attempt);
    let mut number = only.or(attempts.last().map(|attempt| attempt.attempt.number)).unwrap_or(1);
    loop {
        let detail = until_started(client, id, number, |_| eprintln!("carma: {label} has not started attempt {number} yet"))?;
        if detail.attempts.iter().all(|attempt| attempt.attempt.number < number) {
            print_end(&detail, only);
            return Ok(());
        }
        query.attempt = Some(number);
        print(client, &name, query, output)?;
        if only.is_some() {
            print_end(&client.job(&name)?, only);
            return Ok(());
        }
        query.lines = None;
        number += 1;
    }
}

/// Prints how the job, or the requested attempt, ended.
fn print_end(detail: &JobDetail, only: Option<u32>) {
    let attempt = detail.attempts.iter().find(|attempt| Some(attempt.attempt.number) == only);
    let end = match attempt {
        Some(attempt) => attempt.verdict.as_ref().map(|end| format!("{} attempt {}: {end}", detail.label(), attempt.attempt.number)),
        None => detail.outcome().map(|outcome| format!("{}: {outcome}", detail.label())),
    };
    if let Some(end) = end {
        eprintln!("carma: {}", printable(&end));
    }
}

fn print(client: &mut Client, job: &str, query: LogQuery, output: &mut impl Write) -> Result<()> {
    let mut log = client.logs(job, query)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match log.read(&mut buffer).context("the log was interrupted")? {
            0 => return Ok(output.flush()?),
            length => output.write_all(&buffer[..length])?,
        }
        // Flush at once while following.
        if query.follow {
            output.flush()?;
        }
    }
}
