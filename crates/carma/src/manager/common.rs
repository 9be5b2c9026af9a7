//! Common parts of commands that query a manager: address, users, times.

use std::io::Write;
use std::str::FromStr;

use anyhow::Result;
use carma_core::{ArrayId, JobId, UserId};
use carma_manager::api::{HistoryQuery, MAX_ROWS};
use carma_manager::api::{JobDetail, JobSummary};
use carma_manager::client::{Client, ClientError};
use carma_manager::store::UnixMillis;
use carma_manager::submission::span_with_unit;
use clap::Args;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::Serialize;

/// Page size of long lists.
const PAGE: u32 = MAX_ROWS;

/// How to name a job, for the help of commands that take one.
pub(super) const JOB_NAMES: &str = "JOB is a job number, 12_3 for index 3 of array 12, `last` for the job you submitted \
last, or @NAME for your last job of that name.";

/// Which manager to query.
#[derive(Debug, Args)]
pub(crate) struct Manager {
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Manager",
        help = "Address of the manager, such as https://server:7080 [default: CARMA_HOST, your own manager, or that of this machine]"
    )]
    host: Option<String>,
}

impl Manager {
    pub(crate) fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(self.host.as_deref())
    }
}

/// Which manager answers, and in which form the answer is printed.
#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) manager: Manager,
}

/// One job.
#[derive(Debug, Args)]
pub(super) struct JobArguments {
    /// The job.
    #[arg(default_value = "last")]
    pub(super) job: String,
    #[command(flatten)]
    pub(super) answer: AnswerArguments,
}

/// How much of a list is wanted, and how.
#[derive(Debug, Args)]
pub(super) struct Listing {
    /// Maximum number of jobs: the latest; for a queue, this many running, waiting and held jobs.
    #[arg(short = 'n', long, default_value_t = 100)]
    limit: u32,
    /// List all jobs.
    #[arg(short, long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    pub(super) answer: AnswerArguments,
}

impl Listing {
    /// The limit; none: all of them.
    pub(super) fn most(&self) -> Option<u32> {
        (!self.all).then_some(self.limit)
    }
}

/// Only jobs of one user.
#[derive(Debug, Args)]
pub(super) struct UserFilter {
    /// Only jobs of this user (name or number).
    #[arg(short, long, value_parser = user)]
    user: Option<UserId>,
    /// Only your own jobs.
    #[arg(long, conflicts_with = "user")]
    mine: bool,
}

impl UserFilter {
    pub(super) fn user(&self) -> Option<UserId> {
        if self.mine { Some(current_user()) } else { self.user }
    }
}

/// Only jobs of a period.
#[derive(Debug, Args)]
pub(super) struct TimeRange {
    /// Only jobs submitted since this time: 7d, 12h, 2027-01-31 or 2027-01-31T08:00.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only jobs submitted before this time, in the same form.
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
}

impl TimeRange {
    /// Both ends, by the manager's clock.
    pub(super) fn span(&self, client: &mut Client) -> Result<(Option<UnixMillis>, Option<UnixMillis>)> {
        let now = now(client)?;
        Ok((self.since.map(|since| since.at(now)), self.until.map(|until| until.at(now))))
    }
}

/// The current user.
pub(super) fn current_user() -> UserId {
    UserId(rustix::process::geteuid().as_raw())
}

pub(crate) fn user(text: &str) -> Result<UserId, String> {
    if let Ok(number) = text.parse() {
        return Ok(UserId(number));
    }
    let found = nix::unistd::User::from_name(text).map_err(|error| error.to_string())?;
    found.map(|user| UserId(user.uid.as_raw())).ok_or_else(|| "unknown user".to_owned())
}

/// A time as the user writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// This many seconds ago.
    Ago(u64),
    /// By the calendar.
    At(UnixMillis),
}

impl Moment {
    /// The moment, by a clock that shows this: the manager's need not be ours.
    pub(crate) const fn at(self, UnixMillis(now): UnixMillis) -> UnixMillis {
        match self {
            Self::Ago(seconds) => UnixMillis(now.saturating_sub(seconds.saturating_mul(1000))),
            Self::At(moment) => moment,
        }
    }

    /// A duration before now, or a date with or without a time, in this time zone unless it names one.
    fn parse(text: &str, zone: &TimeZone) -> Option<Self> {
        if let Some(seconds) = span_with_unit(text) {
            return Some(Self::Ago(seconds));
        }
        let timestamp = match text.parse::<Timestamp>() {
            Ok(timestamp) => timestamp,
            Err(_) if text.contains(':') => text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp(),
            Err(_) => text.parse::<Date>().ok()?.to_zoned(zone.clone()).ok()?.timestamp(),
        };
        u64::try_from(timestamp.as_millisecond()).ok().map(|moment| Self::At(UnixMillis(moment)))
    }
}

impl FromStr for Moment {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "give a time before now, such as 7d, 12h or 30m, or a date such as 2027-01-31".to_owned();
        Self::parse(text, &TimeZone::system()).ok_or_else(form)
    }
}

/// The jobs of a name: all of an array if it is named as a whole, else one.
pub(super) fn resolve(client: &mut Client, name: &str) -> Result<Vec<JobId>> {
    let job = client.job(name)?;
    match whole_array(name, &job) {
        Some(array) => Ok(members(client, array)?.into_iter().map(|job| job.id).collect()),
        None => Ok(vec![job.id]),
    }
}

/// The array that a name means as a whole, which its first job shows.
pub(super) fn whole_array(name: &str, job: &JobDetail) -> Option<ArrayId> {
    let member = !name.starts_with('@') && name.contains('_');
    job.array.filter(|place| !member && place.array.0 == job.id.0).map(|place| place.array)
}

/// The jobs of an array.
pub(super) fn members(client: &mut Client, array: ArrayId) -> Result<Vec<JobSummary>> {
    let query = HistoryQuery { array: Some(array), ..HistoryQuery::default() };
    let mut jobs = history(client, query, None)?;
    jobs.sort_unstable_by_key(|job| job.id);
    Ok(jobs)
}

/// A limited number of jobs of a history, or all of them, page by page.
pub(super) fn history(client: &mut Client, mut query: HistoryQuery, most: Option<usize>) -> Result<Vec<JobSummary>> {
    let mut jobs: Vec<JobSummary> = Vec::new();
    loop {
        let left = most.map_or(PAGE as usize, |most| most - jobs.len());
        query.limit = Some(PAGE.min(left.try_into().unwrap_or(PAGE)));
        let page = client.history(&query)?;
        let last = page.last().map(|job| job.id);
        jobs.extend(page);
        match last {
            Some(last) if most.is_none_or(|most| jobs.len() < most) => query.before = Some(last),
            _ => return Ok(jobs),
        }
    }
}

/// The manager's clock: it may be another machine's, and emulated GPUs have a faster one.
pub(crate) fn now(client: &mut Client) -> Result<UnixMillis> {
    Ok(client.status()?.now)
}

/// The manager's answer as JSON.
pub(crate) fn write_json(answer: &impl Serialize, output: &mut impl Write) -> Result<()> {
    Ok(writeln!(output, "{}", serde_json::to_string_pretty(answer)?)?)
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    #[test]
    fn times_are_spans_back_from_now_or_dates_of_the_callers_zone() {
        let zone = TimeZone::fixed(tz::offset(2));
        let now = jiff::civil::date(2027, 1, 31).at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().timestamp().as_millisecond();
        let now = UnixMillis(now.try_into().unwrap());
        let ago = |text: &str| Moment::parse(text, &zone).map(|moment| (now.0 - moment.at(now).0) / 3_600_000);
        assert_eq!(["7d", "12h", "2027-01-31", "2027-01-30T10:00"].map(ago), [Some(168), Some(12), Some(12), Some(26)]);
        assert_eq!(["2027-01-30T10:00:00Z", "2027-01-30T10:00:00.000+02:00"].map(ago), [Some(24), Some(26)]);
        assert_eq!(["", "7", "d", "yesterday", "2027-02-30", "-7d"].map(ago), [None; 6]);
    }

    #[test]
    fn users_are_names_or_numbers() {
        assert_eq!((user("7"), user("root")), (Ok(UserId(7)), Ok(UserId(0))));
        assert!(user("no such user").is_err());
    }
}
