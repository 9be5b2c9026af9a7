//! `carma attach`: this terminal becomes an interactive job's.

use std::io::{stdin, stdout};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use carma_core::JobLabel;
use carma_manager::client::Client;
use carma_manager::terminal::{self, AttachOutcome};
use clap::Args;

use super::common::{JOB_NAMES, Manager};
use super::started::until_started;
use super::wait::{JobEnds, end_text, exit_code};
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES}\n\nType ~. at the beginning of a line to detach; the job continues. If another terminal attaches, it takes over.\n\nExample:\n  carma attach @train"))]
pub(crate) struct Arguments {
    /// The job.
    #[arg(default_value = "last")]
    job: String,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut client = arguments.manager.connect()?;
    let job = client.job(&arguments.job)?;
    ensure!(job.request.interactive, "{} has no terminal: only jobs of `carma submit --interactive` have one", job.label());
    attach(client, job.label())
}

/// Waits for the job's start, and then connects this terminal to it until the job ends or the user detaches.
pub(crate) fn attach(mut client: Client, job: JobLabel) -> Result<ExitCode> {
    let name = job.short();
    let on_wait = |client: &mut Client| {
        let why = client.why(&name).map_or_else(|_| format!("{job} waits"), |why| why.text);
        eprintln!("carma: {}", printable(why.lines().next().unwrap_or_default()));
        eprintln!("carma: Ctrl-C leaves the job in the queue; `carma attach {name}` attaches again, `carma cancel {name}` cancels it");
    };
    let detail = until_started(&mut client, job.job, 1, on_wait)?;
    if detail.outcome().is_none() {
        eprintln!("carma: {job} runs; type ~. at the beginning of a line to detach");
        let left = match terminal::attach(client.another()?.terminal(&name)?, stdin(), stdout())? {
            AttachOutcome::Ended(_) => None,
            AttachOutcome::Detached => Some(ExitCode::SUCCESS),
            AttachOutcome::TakenOver => {
                eprintln!("carma: another terminal has attached");
                Some(ExitCode::SUCCESS)
            }
            AttachOutcome::Signalled(signal) => Some(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))),
            AttachOutcome::Lost => {
                eprintln!("carma: the terminal was closed: the manager or the job's supervisor ended");
                Some(ExitCode::FAILURE)
            }
        };
        if let Some(code) = left {
            eprintln!("carma: `carma attach {name}` attaches to {job} again while it runs");
            return Ok(code);
        }
    }
    let mut ends = JobEnds { client: &mut client, jobs: [job.job].into_iter(), until: None };
    let Some(over) = ends.next().transpose()?.flatten() else { return Ok(ExitCode::FAILURE) };
    eprintln!("carma: {}", end_text(&over));
    Ok(exit_code(over.outcome().into_iter()))
}
