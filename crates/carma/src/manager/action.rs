//! `carma cancel`, `hold`, `release` and `requeue`: actions on jobs.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stdin};

use anyhow::{Result, bail, ensure};
use carma_core::JobId;
use carma_manager::api::{ActionResult, JobAction};
use carma_manager::client::Client;
use clap::Args;

use super::common::{AnswerArguments, JOB_NAMES, current_user, write_json};
use super::text::jobs;
use carma_format::count;
use carma_format::printable;

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all its jobs."))]
pub(crate) struct Arguments {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    answer: AnswerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all its jobs.\n\n\
Examples:\n  carma cancel 12 14_3\n  carma cancel --all --yes"))]
pub(crate) struct CancelArguments {
    /// The jobs.
    #[arg(required_unless_present = "all", value_name = "JOB")]
    jobs: Vec<String>,
    /// All your unfinished jobs.
    #[arg(long, conflicts_with = "jobs")]
    all: bool,
    /// Do not ask for confirmation.
    #[arg(short, long, requires = "all")]
    yes: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, action: &JobAction, output: &mut impl Write) -> Result<()> {
    let result = apply(&mut arguments.answer.manager.connect()?, &arguments.jobs, action)?;
    report(&result, action, arguments.answer.json, output)
}

pub(super) fn cancel(arguments: &CancelArguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.answer.manager.connect()?;
    if !arguments.all {
        return report(&apply(client, &arguments.jobs, &JobAction::Cancel)?, &JobAction::Cancel, arguments.answer.json, output);
    }
    let queue = client.whole_queue(Some(current_user()))?;
    if !arguments.yes && !queue.jobs.is_empty() && stdin().is_terminal() {
        eprint!("carma: end {}? [y/N] ", count(queue.jobs.len(), "job"));
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "nothing was ended");
    }
    // Cancelling an array affects all its jobs; those that had already ended are not ours.
    let ours: BTreeSet<JobId> = queue.jobs.iter().map(|job| job.id).collect();
    let names: BTreeSet<u64> = queue.jobs.iter().map(|job| job.array.map_or(job.id.0, |place| place.array.0)).collect();
    let mut result = apply(client, &names.iter().map(ToString::to_string).collect::<Vec<_>>(), &JobAction::Cancel)?;
    result.not_done.retain(|not_done| ours.contains(&not_done.job));
    report(&result, &JobAction::Cancel, arguments.answer.json, output)
}

/// Acts on all named jobs. Stops at one that cannot be found, and reports it.
pub(super) fn apply(client: &mut Client, names: &[String], action: &JobAction) -> Result<ActionResult> {
    let mut all = ActionResult::default();
    for name in names {
        match client.act(name, action) {
            Ok(result) => {
                all.done.extend(result.done);
                all.not_done.extend(result.not_done);
            }
            Err(error) if all.done.is_empty() => return Err(error.into()),
            Err(error) => bail!("{error}; {} before it: {}", past_participle(action), jobs(&all.done)),
        }
    }
    Ok(all)
}

/// Prints the completed actions; returns an error for the failed ones.
pub(super) fn report(result: &ActionResult, action: &JobAction, json: bool, output: &mut impl Write) -> Result<()> {
    if json {
        write_json(result, output)?;
    } else if !result.done.is_empty() {
        writeln!(output, "{} {}", past_participle(action), jobs(&result.done))?;
    }
    for not_done in &result.not_done {
        eprintln!("carma: {}: {}", not_done.job, printable(&not_done.reason));
    }
    ensure!(
        result.not_done.is_empty(),
        "{} not {}",
        jobs(&result.not_done.iter().map(|job| job.job).collect::<Vec<_>>()),
        past_participle(action)
    );
    Ok(())
}

/// The past participle of an action.
pub(crate) const fn past_participle(action: &JobAction) -> &'static str {
    match action {
        JobAction::Cancel => "cancelled",
        JobAction::Hold => "held",
        JobAction::Release => "released",
        JobAction::Requeue => "requeued",
        JobAction::Change(_) => "changed",
    }
}

#[cfg(test)]
mod tests {
    use carma_manager::api::ActionFailure;

    use super::*;

    #[test]
    fn completed_actions_are_printed_and_failed_ones_are_errors() {
        let done = ActionResult { done: vec![JobId(3), JobId(4)], not_done: Vec::new() };
        let mut output = Vec::new();
        report(&done, &JobAction::Cancel, false, &mut output).unwrap();
        let refused = ActionFailure { job: JobId(5), reason: "a job that is done cannot be held".to_owned() };
        let error =
            report(&ActionResult { not_done: vec![refused], ..ActionResult::default() }, &JobAction::Hold, false, &mut output).unwrap_err();
        assert_eq!((String::from_utf8(output).unwrap().as_str(), error.to_string().as_str()), ("cancelled jobs 3-4\n", "job 5 not held"));
    }
}
