//! `carma attach`: this terminal becomes an interactive job's.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use carma_core::JobId;
use carma_manager::client::Client;
use clap::Args;

use super::ask::{Manager, NAMING};
use super::started::until_started;
use super::wait::{ending, exit_code};
use crate::text::printable;

#[derive(Debug, Args)]
#[command(after_help = NAMING)]
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
    ensure!(job.request.interactive, "{} has no terminal: only jobs of `carma submit --interactive` have one", job.id);
    attach(client, job.id)
}

/// Waits for the job's start, and then carries this terminal to it until it is over or left.
pub(crate) fn attach(mut client: Client, job: JobId) -> Result<ExitCode> {
    let name = job.0.to_string();
    let told = |client: &mut Client| {
        let why = client.why(&name).map_or_else(|_| format!("{job} waits"), |why| why.text);
        eprintln!("carma: {}", printable(why.lines().next().unwrap_or_default()));
        eprintln!("carma: Ctrl-C leaves it waiting; `carma attach {name}` comes back, `carma cancel {name}` ends it");
    };
    let detail = until_started(&mut client, job, 1, told)?;
    if detail.outcome().is_none() {
        bail!("{job} runs, but this build carries no terminals");
    }
    eprintln!("carma: {}", ending(&detail));
    Ok(exit_code(detail.outcome().into_iter()))
}
