//! `carma history`: all jobs, with finished ones.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::{HistoryQuery, JobSummary};
use carma_manager::store::{Phase, UnixMillis};
use clap::Args;
use jiff::tz::TimeZone;

use super::common::{Listing, TimeRange, UserFilter, history, now, write_json};
use super::queue::identity;
use super::text::{moment, span};
use carma_format::clock;
use carma_format::{left, right, write_table};

#[derive(Debug, Args)]
#[command(after_help = "\
TOOK is the time from submission to the end, or until now.\n\n\
Examples:\n  carma history --mine --since 7d\n  carma history --state done --name resnet --all --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    users: UserFilter,
    /// Only jobs in this state: held, queued, starting, running, recovering, preempted or done.
    #[arg(long)]
    state: Option<Phase>,
    /// Only jobs with this text in their name.
    #[arg(long)]
    name: Option<String>,
    /// Only jobs with this text in their name or user, or with this number.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    #[command(flatten)]
    range: TimeRange,
    #[command(flatten)]
    listing: Listing,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.listing.answer.manager.connect()?;
    let (since, until) = arguments.range.span(client)?;
    let query = HistoryQuery {
        user: arguments.users.user(),
        state: arguments.state,
        name: arguments.name.clone(),
        text: arguments.search.clone(),
        since,
        until,
        ..HistoryQuery::default()
    };
    let jobs = history(client, query, arguments.listing.most().map(|most| most as usize))?;
    if arguments.listing.answer.json { write_json(&jobs, output) } else { table(&jobs, now(client)?, &TimeZone::system(), output) }
}

fn table(jobs: &[JobSummary], now: UnixMillis, zone: &TimeZone, output: &mut impl Write) -> Result<()> {
    let row = |job: &JobSummary| {
        [
            identity(job.id, job.array),
            job.name.clone().unwrap_or_else(|| "-".to_owned()),
            job.user_name.clone(),
            // To the minute.
            moment(job.submitted, zone).chars().take(16).collect(),
            clock(span(job.submitted, job.ended.unwrap_or(now))),
            job.gpus.to_string(),
            job.attempts.to_string(),
            job.ending.as_ref().map_or_else(|| job.phase.to_string(), |ending| ending.brief.clone()),
        ]
    };
    let columns = [
        right("ID", 11),
        left("NAME", 11),
        left("USER", 8),
        left("SUBMITTED", 16),
        right("TOOK", 8),
        right("GPUS", 4),
        right("RUNS", 4),
        left("STATE", 13),
    ];
    Ok(write_table(columns, &jobs.iter().map(row).collect::<Vec<_>>(), output)?)
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, JobId, Outcome, Priority, UserId};
    use carma_manager::api::{ArrayPlace, Ending};

    use super::*;

    #[test]
    fn the_history_fits_the_terminal() {
        let over = JobSummary {
            id: JobId(9),
            name: Some("resnet50_imagenet_bs64".to_owned()),
            user: UserId(1000),
            user_name: "ada".to_owned(),
            phase: Phase::Done,
            since: UnixMillis(1_800_000_090_000),
            priority: Priority(0),
            gpus: 1,
            attempts: 2,
            array: None,
            submitted: UnixMillis(1_800_000_000_000),
            ended: Some(UnixMillis(1_800_000_090_000)),
            outcome: Some(Outcome::OutOfMemory),
            ending: Some(Ending::from(&Outcome::OutOfMemory)),
            ran: None,
            peak: None,
            energy: None,
        };
        let member = JobSummary {
            array: Some(ArrayPlace { array: ArrayId(100_000), index: 12 }),
            ending: Some(Ending::from(&Outcome::Failed { code: 137 })),
            user_name: "somebody-else".to_owned(),
            ..over.clone()
        };
        let runs = JobSummary { name: None, phase: Phase::Running, ended: None, outcome: None, ending: None, ..over.clone() };
        let mut output = Vec::new();
        table(&[over, member, runs], UnixMillis(1_800_200_000_000), &TimeZone::UTC, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("history", text);
    }
}
