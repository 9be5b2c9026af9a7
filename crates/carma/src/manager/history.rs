//! `carma history`: all jobs, with finished ones.

use std::io::Write;

use anyhow::Result;
use carma_core::Seconds;
use carma_manager::api::{HistoryQuery, JobSummary, OutcomeFilter};
use carma_manager::store::{Phase, UnixMillis};
use clap::Args;
use jiff::tz::TimeZone;

use super::common::{Listing, TimeRange, UserFilter, history, now, write_json};
use super::queue::identity;
use super::text::{moment, span};
use carma_format::{clock, energy};
use carma_format::{left, right, write_table};

#[derive(Debug, Args)]
#[command(after_help = "\
RAN is the run time of all attempts. TOTAL is the time from submission to the end, \
or until now. PEAK is the peak memory on a GPU.\n\n\
Examples:\n  carma history --mine --since 7d\n  carma history --outcome failed\n  carma history --state done --name resnet --all --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    users: UserFilter,
    /// Only jobs in this state: held, queued, starting, running, recovering, preempted or done.
    #[arg(long)]
    state: Option<Phase>,
    /// Only jobs with this outcome.
    #[arg(long)]
    outcome: Option<OutcomeFilter>,
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
        outcome: arguments.outcome,
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
    let unknown = || "-".to_owned();
    let row = |job: &JobSummary| {
        [
            identity(job.id, job.array),
            job.name.clone().unwrap_or_else(|| "-".to_owned()),
            job.user_name.clone(),
            // Day and minute.
            moment(job.submitted, zone).chars().skip(5).take(11).collect(),
            job.gpus.to_string(),
            ran(job, now).map_or_else(unknown, clock),
            clock(span(job.submitted, job.ended.unwrap_or(now))),
            job.peak.map_or_else(unknown, |peak| format!("{:.1}G", peak.0 as f64 / 1024.0)),
            job.energy.map_or_else(unknown, |joules| energy(joules.0)),
            job.ending.as_ref().map_or_else(|| job.phase.to_string(), |ending| ending.brief.clone()),
        ]
    };
    let columns = [
        right("ID", 11),
        left("NAME", 11),
        left("USER", 8),
        left("SUBMITTED", 11),
        right("GPUS", 4),
        right("RAN", 7).spoken("run time"),
        right("TOTAL", 7).spoken("time until its end"),
        right("PEAK", 6).spoken("peak memory"),
        right("ENERGY", 8),
        left("STATE", 13),
    ];
    Ok(write_table(columns, &jobs.iter().map(row).collect::<Vec<_>>(), output)?)
}

/// How long a job has run, in seconds; none if it never did.
fn ran(job: &JobSummary, now: UnixMillis) -> Option<f64> {
    let running = matches!(job.phase, Phase::Starting | Phase::Running).then(|| span(job.since, now));
    let over = job.ran.map(Seconds::get);
    (running.is_some() || over.is_some()).then(|| running.unwrap_or_default() + over.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, JobId, MiB, Outcome, Priority, UserId};
    use carma_manager::api::{ArrayPlace, Ending};
    use carma_manager::store::Joules;

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
            ran: Some(Seconds::from_secs(75)),
            peak: Some(MiB(40_448)),
            energy: Some(Joules(43_210.0)),
        };
        let member = JobSummary {
            array: Some(ArrayPlace { array: ArrayId(100_000), index: 12 }),
            ending: Some(Ending::from(&Outcome::Failed { code: 137 })),
            user_name: "somebody-else".to_owned(),
            ..over.clone()
        };
        let runs = JobSummary {
            name: None,
            phase: Phase::Running,
            ended: None,
            outcome: None,
            ending: None,
            ran: None,
            peak: None,
            energy: None,
            ..over.clone()
        };
        let mut output = Vec::new();
        table(&[over, member, runs], UnixMillis(1_800_200_000_000), &TimeZone::UTC, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "too wide");
        insta::assert_snapshot!("history", text);
    }
}
