//! Commands that query a running manager. Each has its own file, and a line in the two tables here.

mod action;
mod attach;
mod common;
mod down;
mod drain;
mod energy;
mod export;
mod history;
mod logs;
mod metrics;
mod queue;
mod resubmit;
mod servers;
mod set;
mod shares;
mod show;
mod started;
mod status;
mod text;
mod usage;
mod wait;
mod why;

pub(crate) use action::past_participle;
pub(crate) use attach::attach;
pub(crate) use common::{AnswerArguments, Manager, Moment, now, user, write_json};
pub(crate) use energy::JOULES_PER_KILOWATT_HOUR;
pub(crate) use queue::{identity, remark, table as write_queue};
#[cfg(test)]
pub(crate) use show::sample;
pub(crate) use show::write as write_job;
pub(crate) use status::text as status_text;
pub(crate) use text::{command_text, devices, estimate, moment, names, span};
pub(crate) use wait::{JobEnds, end_text, exit_code};

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List running and waiting jobs.
    #[command(visible_alias = "q")]
    Queue(queue::Arguments),
    /// Show the details of a job.
    Show(show::Arguments),
    /// Explain why a job waits, for each GPU.
    Why(why::Arguments),
    /// Print the output of a job.
    Logs(logs::Arguments),
    /// Connect this terminal to an interactive job.
    Attach(attach::Arguments),
    /// Wait until jobs have ended.
    Wait(wait::Arguments),
    /// Cancel running or waiting jobs.
    Cancel(action::CancelArguments),
    /// Hold waiting jobs.
    #[command(after_help = action::help("hold"))]
    Hold(action::Arguments),
    /// Release held jobs.
    #[command(after_help = action::help("release"))]
    Release(action::Arguments),
    /// Stop running jobs, after a checkpoint if possible, and queue them again.
    #[command(after_help = action::help("requeue"))]
    Requeue(action::Arguments),
    /// Submit jobs once more, as new jobs.
    Resubmit(resubmit::Arguments),
    /// Change the priority or the time limit of jobs.
    Set(set::Arguments),
    /// List jobs, including finished ones, the latest first.
    History(history::Arguments),
    /// Show the energy of jobs, and its cost.
    Energy(energy::Arguments),
    /// Show the fair shares of users.
    #[command(after_help = shares::HELP)]
    Shares(AnswerArguments),
    /// Show the jobs, GPU time, energy and fair share of a user.
    Usage(usage::Arguments),
    /// List the servers with an agent.
    #[command(after_help = "Example:\n  carma servers")]
    Servers(AnswerArguments),
    /// Export jobs as CSV or JSON.
    Export(export::Arguments),
    /// Start no new jobs on GPUs; running jobs continue.
    #[command(after_help = drain::help("drain"))]
    Drain(drain::Arguments),
    /// Use drained GPUs again.
    #[command(after_help = drain::help("resume"))]
    Resume(drain::Arguments),
    /// Show the state of the manager.
    #[command(after_help = "Example:\n  carma status --json")]
    Status(AnswerArguments),
    /// Print metrics in the format of Prometheus.
    Metrics(metrics::Arguments),
    /// Stop the manager; running jobs continue.
    Down(down::Arguments),
}

impl Command {
    pub(crate) fn run(&self, output: &mut impl Write) -> Result<ExitCode> {
        use carma_manager::api::JobAction;
        match self {
            Self::Queue(arguments) => queue::run(arguments, output),
            Self::Show(arguments) => show::run(arguments, output),
            Self::Why(arguments) => why::run(arguments, output),
            Self::Logs(arguments) => logs::run(arguments, output),
            Self::Attach(arguments) => return attach::run(arguments),
            Self::Wait(arguments) => return wait::run(arguments, output),
            Self::Cancel(arguments) => action::cancel(arguments, output),
            Self::Hold(arguments) => action::run(arguments, &JobAction::Hold, output),
            Self::Release(arguments) => action::run(arguments, &JobAction::Release, output),
            Self::Requeue(arguments) => action::run(arguments, &JobAction::Requeue, output),
            Self::Resubmit(arguments) => resubmit::run(arguments, output),
            Self::Set(arguments) => set::run(arguments, output),
            Self::History(arguments) => history::run(arguments, output),
            Self::Energy(arguments) => energy::run(arguments, output),
            Self::Shares(arguments) => shares::run(arguments, output),
            Self::Usage(arguments) => usage::run(arguments, output),
            Self::Servers(arguments) => servers::run(arguments, output),
            Self::Export(arguments) => export::run(arguments, output),
            Self::Drain(arguments) => drain::run(arguments, true, output),
            Self::Resume(arguments) => drain::run(arguments, false, output),
            Self::Status(arguments) => status::run(arguments, output),
            Self::Metrics(arguments) => metrics::run(arguments, output),
            Self::Down(arguments) => down::run(arguments, output),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
