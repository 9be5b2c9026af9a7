//! `carma set`: another priority or time limit.

use std::io::Write;

use anyhow::Result;
use carma_core::{LimitChange, Priority};
use carma_manager::api::{JobAction, JobChange};
use carma_manager::submission::time_limit;
use clap::Args;

use super::action::{apply, report};
use super::common::{AnswerArguments, JOB_NAMES};

#[derive(Debug, Args)]
#[command(after_help = format!("{JOB_NAMES} The number of an array means all its jobs.\n\n\
Examples:\n  carma set 12 --priority -5\n  carma set last --time 2:00:00\n  carma set @train --time none"))]
#[group(id = "change", required = true, multiple = true, args = ["priority", "time"])]
pub(crate) struct Arguments {
    /// The jobs.
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// The new priority; higher runs first. Only operators may raise it above 0.
    #[arg(short, long, allow_hyphen_values = true, value_parser = priority)]
    priority: Option<i32>,
    /// The new time limit of an attempt, from its start: minutes, or 90s, 12h, 1:30:00; none removes the limit.
    #[arg(short, long, value_name = "LIMIT", value_parser = limit)]
    time: Option<LimitChange>,
    #[command(flatten)]
    answer: AnswerArguments,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let change = JobChange { priority: arguments.priority.map(Priority), time_limit: arguments.time.unwrap_or_default() };
    let action = JobAction::Change(change);
    report(&apply(&mut arguments.answer.manager.connect()?, &arguments.jobs, &action)?, &action, arguments.answer.json, output)
}

fn priority(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "give a whole number, such as 5 or -5".to_owned())
}

fn limit(text: &str) -> Result<LimitChange, String> {
    if text == "none" {
        return Ok(LimitChange::Remove);
    }
    let limit = time_limit(text).map_err(|problem| problem.to_string())?;
    Ok(limit.map_or(LimitChange::Remove, LimitChange::Set))
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn a_change_is_required_and_limits_have_slurm_forms() {
        let read = |flags: &[&str]| Line::try_parse_from([&["set", "12"], flags].concat()).map(|line| line.arguments);
        assert!(read(&[]).unwrap_err().to_string().contains("--priority <PRIORITY>|--time <LIMIT>"));
        let limits = ["90", "none", "unlimited"].map(|limit| read(&["--time", limit]).unwrap().time);
        assert_eq!(limits, [LimitChange::Set(Seconds::from_secs(5400)), LimitChange::Remove, LimitChange::Remove].map(Some));
        assert_eq!(read(&["-p", "-3"]).unwrap().priority, Some(-3));
        assert!(read(&["--time", "soon"]).is_err());
    }
}
