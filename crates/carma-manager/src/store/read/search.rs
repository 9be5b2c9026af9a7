//! Which jobs a page of the history has. Each way to find them uses an index, because a search that finds nothing must not read a million jobs.

use std::collections::BTreeSet;

use carma_core::{JobId, UserId};
use rusqlite::{ToSql, params, params_from_iter};

use super::Reader;
use super::history::{Conditions, JobFilter, Span};
use crate::ending::OutcomeFilter;
use crate::phase::Phase;
use crate::store::error::StoreError;
use crate::store::names::phrase;
use crate::units::UnixMillis;

/// All users with jobs, each with the name of the latest job's user. SQLite has no such step through an index by itself.
const USERS: &str = "WITH RECURSIVE users (uid) AS (
        SELECT min(uid) FROM jobs UNION ALL SELECT (SELECT min(uid) FROM jobs WHERE uid > users.uid) FROM users WHERE uid IS NOT NULL
    )
    SELECT uid, (SELECT user FROM jobs WHERE jobs.uid = users.uid ORDER BY id DESC LIMIT 1) AS name FROM users WHERE uid IS NOT NULL";
const NAMED: &str = "SELECT rowid, ifnull((SELECT last FROM arrays WHERE array = job_names.rowid), rowid) FROM job_names
    WHERE job_names MATCH ?1 AND rowid <= ?2 ORDER BY rowid DESC";
/// The numbers of the jobs of a period. Numbers rise with time, unless the clock was set.
const FIRST: &str = "SELECT ifnull(min(first), 9223372036854775807) FROM submission_hours WHERE hour >= ?1 / 3600000";
const LAST: &str = "SELECT ifnull(max(last), 0) FROM submission_hours WHERE hour <= ?1 / 3600000";

impl JobFilter {
    /// The index for its jobs, where the planner cannot know that most jobs are over and have succeeded.
    fn index(&self) -> &'static str {
        match (self.array, self.phase, self.outcome) {
            (None, _, Some(OutcomeFilter::Cancelled)) => "INDEXED BY jobs_cancelled",
            (None, _, Some(outcome)) if outcome != OutcomeFilter::Succeeded => "INDEXED BY jobs_failed",
            (None, Some(phase), None) if phase != Phase::Done => "INDEXED BY jobs_unfinished_by_user",
            _ => "",
        }
    }

    fn within(&self, (first, last): (i64, i64)) -> Conditions {
        self.conditions().and("id >= ?", Some(first)).and("id <= ?", Some(last))
    }
}

impl Reader {
    /// The numbers of the jobs of a page, the latest first.
    pub(super) fn numbers(&self, filter: &JobFilter, before: Option<JobId>, most: u32) -> Result<Vec<u64>, StoreError> {
        let numbers = self.numbers_of(filter.submitted, before)?;
        let all = || filter.within(numbers);
        let text = filter.text.as_deref().or(filter.name.as_deref());
        let (index, selects) = (filter.index(), filter.array.is_some() || !filter.index().is_empty());
        let Some(phrase) = text.and_then(phrase).filter(|_| !selects) else { return self.ids(index, all(), most) };
        let mut found: BTreeSet<u64> = self.named(&phrase, filter, numbers, most)?.into_iter().collect();
        if let Some(text) = &filter.text {
            if let Ok(number) = text.trim().parse::<i64>() {
                found.extend(self.ids(index, all().and("id = ?", Some(number)), most)?);
            }
            for user in self.users_called(text)? {
                found.extend(self.ids(index, all().and("uid = ?", Some(user.0)), most)?);
            }
        }
        Ok(found.into_iter().rev().take(most as usize).collect())
    }

    /// The numbers of jobs that meet these conditions, the latest first.
    fn ids(&self, index: &str, Conditions { sql, values }: Conditions, most: u32) -> Result<Vec<u64>, StoreError> {
        let sql = format!("SELECT id FROM jobs {index} WHERE {sql} ORDER BY id DESC LIMIT {most}");
        self.rows(&sql, params_from_iter(values), |row| row.get(0))
    }

    /// The first and the last number that a job of this period before this job may have.
    fn numbers_of(&self, submitted: Span, before: Option<JobId>) -> Result<(i64, i64), StoreError> {
        let bound = |sql: &str, at: Option<UnixMillis>| at.map_or(Ok(None), |at| self.first(sql, params![at], |row| row.get(0)));
        let before = before.map(|job| i64::try_from(job.0).map_err(|_| StoreError::OutOfRange)).transpose()?;
        let last = before.map_or(i64::MAX, |before| before.saturating_sub(1));
        Ok((bound(FIRST, submitted.since)?.unwrap_or(0), bound(LAST, submitted.until)?.unwrap_or(i64::MAX).min(last)))
    }

    /// Jobs of these numbers with this phrase in their names that meet the filter too.
    fn named(&self, phrase: &str, filter: &JobFilter, numbers: (i64, i64), most: u32) -> Result<Vec<u64>, StoreError> {
        self.run(|connection| {
            let (mut index, mut found) = (connection.prepare_cached(NAMED)?, Vec::new());
            let mut entries = index.query(params![phrase, numbers.1])?;
            let sql = format!("SELECT id FROM jobs WHERE {} AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?", filter.within(numbers).sql);
            let mut jobs = connection.prepare_cached(&sql)?;
            while let Some(entry) = entries.next()? {
                let (first, last): (i64, i64) = (entry.get(0)?, entry.get(1)?);
                if last < numbers.0 {
                    break;
                }
                let Conditions { mut values, .. } = filter.within(numbers);
                values.extend([Box::new(first) as Box<dyn ToSql>, Box::new(last), Box::new(most as usize - found.len())]);
                let more = jobs.query_map(params_from_iter(values), |row| row.get(0))?;
                found.extend(more.collect::<rusqlite::Result<Vec<u64>>>()?);
                if found.len() >= most as usize {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// The users with this in their names, ignoring case.
    fn users_called(&self, text: &str) -> Result<Vec<UserId>, StoreError> {
        let sql = format!("SELECT uid FROM ({USERS}) WHERE instr(lower(name), lower(?1)) > 0");
        self.rows(&sql, params![text], |row| row.get(0).map(UserId))
    }
}
