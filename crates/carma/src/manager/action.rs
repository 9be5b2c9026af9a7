//! `carma cancel`, `hold`, `release` and `requeue`: actions on jobs.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stdin};
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use carma_core::{ArrayId, JobId, JobLabel, UserId};
use carma_manager::api::{ActionResult, JobAction, QueueRow};
use carma_manager::client::Client;
use carma_manager::store::{NotAPhase, Phase, label};
use clap::Args;

use super::common::{AnswerArguments, JOB_NAMES, current_user, user, write_json};
use super::text::jobs;
use carma_format::count;
use carma_format::printable;

/// The end of the help of a command that changes jobs.
pub(super) fn help(verb: &str) -> String {
    format!("{JOB_NAMES} The number of an array means all its jobs.\n\nExamples:\n  carma {verb} 12 14_3\n  carma {verb} last")
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    #[command(flatten)]
    answer: AnswerArguments,
}

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all its jobs.\n\n\
Examples:\n  carma cancel 12 14_3\n  carma cancel --name 'sweep-*' --state queued\n  carma cancel --all --yes"))]
pub(crate) struct CancelArguments {
    /// The jobs.
    #[arg(required_unless_present_any = ["all", "user", "name", "state"], value_name = "JOB")]
    jobs: Vec<String>,
    /// All your unfinished jobs.
    #[arg(long, conflicts_with = "jobs")]
    all: bool,
    /// All unfinished jobs of this user (name or number).
    #[arg(short, long, value_parser = user, conflicts_with_all = ["jobs", "all"])]
    user: Option<UserId>,
    /// Only jobs of this name; * stands for any text. Without --user, your own jobs.
    #[arg(long, conflicts_with_all = ["jobs", "all"])]
    name: Option<String>,
    /// Only jobs in this state: queued, running, ..., or waiting for all that have not started. Without --user, your own jobs.
    #[arg(long, conflicts_with_all = ["jobs", "all"])]
    state: Option<StateFilter>,
    /// Do not ask for confirmation.
    #[arg(short, long, conflicts_with = "jobs")]
    yes: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

/// States of jobs to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateFilter {
    /// Every state that `carma status` counts as waiting.
    Waiting,
    One(Phase),
}

impl StateFilter {
    fn includes(self, phase: Phase) -> bool {
        match self {
            Self::Waiting => matches!(phase, Phase::Estimating | Phase::Queued | Phase::Recovering | Phase::Preempted),
            Self::One(only) => only == phase,
        }
    }
}

impl FromStr for StateFilter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "waiting" {
            Ok(Self::Waiting)
        } else {
            text.parse().map(Self::One).map_err(|error: NotAPhase| format!("{error}; or waiting"))
        }
    }
}

pub(super) fn run(arguments: &Arguments, action: &JobAction, output: &mut impl Write) -> Result<()> {
    let result = apply(&mut arguments.answer.manager.connect()?, &arguments.jobs, action)?;
    report(&result, action, arguments.answer.json, output)
}

pub(super) fn cancel(arguments: &CancelArguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.answer.manager.connect()?;
    if !arguments.jobs.is_empty() {
        return report(&apply(client, &arguments.jobs, &JobAction::Cancel)?, &JobAction::Cancel, arguments.answer.json, output);
    }
    let queue = client.whole_queue(Some(arguments.user.unwrap_or_else(current_user)))?.jobs;
    let (chosen, others): (Vec<QueueRow>, Vec<QueueRow>) = queue.into_iter().partition(|job| arguments.chooses(job));
    ensure!(!chosen.is_empty() || arguments.all, "no job was cancelled: no unfinished job fits");
    if !arguments.yes && !chosen.is_empty() && stdin().is_terminal() {
        eprint!("carma: end {}? [y/N] ", count(chosen.len(), "job"));
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "no job was cancelled");
    }
    // Cancelling an array affects all its jobs; those that had already ended are not ours.
    let ours: BTreeSet<JobId> = chosen.iter().map(|job| job.id).collect();
    let mut result = apply(client, &shortest_names(&chosen, &others), &JobAction::Cancel)?;
    result.not_done.retain(|not_done| ours.contains(&not_done.job));
    report(&result, &JobAction::Cancel, arguments.answer.json, output)
}

impl CancelArguments {
    /// Whether the filters choose a job.
    fn chooses(&self, job: &QueueRow) -> bool {
        let named = |pattern: &String| matches(pattern, job.name.as_deref().unwrap_or_default());
        self.name.as_ref().is_none_or(named) && self.state.is_none_or(|state| state.includes(job.state))
    }
}

/// Whether a text fits a pattern, in which * stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text
            .strip_prefix(before)
            .is_some_and(|rest| rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| matches(after, &rest[at..]))),
    }
}

/// The names of these jobs: of an array as a whole, if none of its jobs is left out.
fn shortest_names(chosen: &[QueueRow], others: &[QueueRow]) -> Vec<String> {
    let array = |job: &QueueRow| job.array.map(|place| place.array);
    let divided: BTreeSet<ArrayId> = others.iter().filter_map(array).collect();
    let name = |job: &QueueRow| match array(job) {
        Some(whole) if !divided.contains(&whole) => whole.0.to_string(),
        _ => label(job.id, job.array).short(),
    };
    let mut names: Vec<String> = chosen.iter().map(name).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Acts on all named jobs. Stops at one that cannot be found, and reports it.
pub(super) fn apply(client: &mut Client, names: &[String], action: &JobAction) -> Result<ActionResult> {
    let mut all = ActionResult::default();
    for name in names {
        match client.act(name, action) {
            Ok(result) => {
                all.done.extend(result.done);
                all.not_done.extend(result.not_done);
                all.arrays.extend(result.arrays);
            }
            Err(error) if all.done.is_empty() => return Err(error.into()),
            Err(error) => bail!("{error}; {} before it: {}", past_participle(action), done(&all)),
        }
    }
    Ok(all)
}

/// Prints the completed actions; returns an error for the failed ones.
pub(super) fn report(result: &ActionResult, action: &JobAction, json: bool, output: &mut impl Write) -> Result<()> {
    if json {
        write_json(result, output)?;
    } else if !result.done.is_empty() {
        writeln!(output, "{} {}", past_participle(action), done(result))?;
    }
    for not_done in &result.not_done {
        eprintln!("carma: {}: {}", named(result, not_done.job), printable(&not_done.reason));
    }
    ensure!(
        result.not_done.is_empty(),
        "{} not {}",
        jobs(&result.not_done.iter().map(|failure| named(result, failure.job)).collect::<Vec<_>>()),
        past_participle(action)
    );
    Ok(())
}

/// The name of a job of a result.
fn named(result: &ActionResult, job: JobId) -> JobLabel {
    label(job, result.arrays.get(&job).copied())
}

fn done(result: &ActionResult) -> String {
    jobs(&result.done.iter().map(|job| named(result, *job)).collect::<Vec<_>>())
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
    fn a_star_stands_for_any_text() {
        for (pattern, text) in [("sweep", "sweep"), ("sweep-*", "sweep-"), ("*a*b", "xaab"), ("*", ""), ("*ä", "aä")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("sweep", "sweep-1"), ("a*c", "ab"), ("*a*a", "a"), ("", "a")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn waiting_is_what_has_not_started_and_is_not_held() {
        let chosen = |text: &str| {
            let filter: StateFilter = text.parse().unwrap();
            let phases = [Phase::Held, Phase::Estimating, Phase::Queued, Phase::Running, Phase::Recovering, Phase::Preempted];
            phases.into_iter().filter(|phase| filter.includes(*phase)).collect::<Vec<_>>()
        };
        assert_eq!(chosen("waiting"), [Phase::Estimating, Phase::Queued, Phase::Recovering, Phase::Preempted]);
        assert_eq!(chosen("held"), [Phase::Held]);
        assert!("wating".parse::<StateFilter>().unwrap_err().ends_with("or waiting"));
    }

    #[test]
    fn completed_actions_are_printed_and_failed_ones_are_errors() {
        let done = ActionResult { done: vec![JobId(3), JobId(4)], ..ActionResult::default() };
        let mut output = Vec::new();
        report(&done, &JobAction::Cancel, false, &mut output).unwrap();
        let refused = ActionFailure { job: JobId(5), reason: "the job is done and cannot be held".to_owned() };
        let error =
            report(&ActionResult { not_done: vec![refused], ..ActionResult::default() }, &JobAction::Hold, false, &mut output).unwrap_err();
        assert_eq!((String::from_utf8(output).unwrap().as_str(), error.to_string().as_str()), ("cancelled jobs 3-4\n", "job 5 not held"));
    }
}
