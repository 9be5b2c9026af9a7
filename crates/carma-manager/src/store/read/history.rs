//! Lists of jobs: the queue, the history page by page, and everything for an export.

use std::iter;

use carma_core::{ArrayId, JobId, Outcome, Priority, UserId};
use rusqlite::{Row, ToSql, params, params_from_iter};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Reader;
use super::job::JobHistory;
use crate::store::columns::{Json, Named};
use crate::store::error::StoreError;
use crate::store::phase::Phase;
use crate::store::units::UnixMillis;

/// A job as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobSummary {
    /// Which.
    #[schema(value_type = u64)]
    pub id: JobId,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    #[schema(value_type = u32)]
    pub user: UserId,
    /// And that user's name.
    pub user_name: String,
    /// Where it stands.
    pub phase: Phase,
    /// Since when it stands there.
    pub since: UnixMillis,
    /// Higher goes first.
    #[schema(value_type = i32)]
    pub priority: Priority,
    /// GPUs it wants.
    pub gpus: u32,
    /// Attempts so far.
    pub attempts: u32,
    /// Its array, and its index there.
    #[schema(value_type = Option<Vec<u64>>)]
    pub array: Option<(ArrayId, u32)>,
    /// When it was submitted.
    pub submitted: UnixMillis,
    /// When it ended.
    pub ended: Option<UnixMillis>,
    /// How it ended.
    #[schema(value_type = Option<Object>)]
    pub outcome: Option<Outcome>,
}

/// From one time to before another; open where unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first moment of it.
    pub since: Option<UnixMillis>,
    /// The first moment after it.
    pub until: Option<UnixMillis>,
}

/// Which jobs are wanted; what is unset does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Of this user.
    pub user: Option<UserId>,
    /// In this state.
    pub phase: Option<Phase>,
    /// With this in its name, whatever the case of its letters.
    pub name: Option<String>,
    /// With this in its name or in its user's, whatever the case of its letters, or as its number.
    pub text: Option<String>,
    /// Of this array.
    pub array: Option<ArrayId>,
    /// Submitted within this.
    pub submitted: Span,
}

/// Conditions of a query, with their values in order.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    pub(super) fn new() -> Self {
        Self { sql: "TRUE".to_owned(), values: Vec::new() }
    }

    /// Asks for one more thing, where it is wanted.
    pub(super) fn and(mut self, condition: &str, value: Option<impl ToSql + 'static>) -> Self {
        if let Some(value) = value {
            self.sql += " AND ";
            self.sql += condition;
            self.values.push(Box::new(value));
        }
        self
    }
}

impl JobFilter {
    fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::new();
        if let Some(text) = &self.text {
            conditions.sql += r" AND (name LIKE ? ESCAPE '\' OR user LIKE ? ESCAPE '\' OR id = ?)";
            let part = containing(text);
            conditions.values.extend([Box::new(part.clone()) as Box<dyn ToSql>, Box::new(part), Box::new(text.trim().parse::<i64>().ok())]);
        }
        conditions
            .and("uid = ?", self.user.map(|user| user.0))
            .and("phase = ?", self.phase.map(Named))
            .and("instr(lower(name), lower(?)) > 0", self.name.clone())
            .and("array = ?", self.array.map(|array| array.0))
            .and("submitted >= ?", self.submitted.since)
            .and("submitted < ?", self.submitted.until)
    }
}

/// A pattern for all that has this text in it, in which no letter has a second meaning.
fn containing(text: &str) -> String {
    // No name is longer, and longer patterns are refused.
    let text: String = text.chars().take(1000).collect();
    format!("%{}%", text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_"))
}

const SUMMARY: &str =
    "SELECT id, name, uid, user, phase, since, priority, gpus, attempts, array, array_index, submitted, ended, outcome FROM jobs";

fn read_summary(row: &Row<'_>) -> rusqlite::Result<JobSummary> {
    let Named(phase) = row.get(4)?;
    let array = row.get::<_, Option<u64>>(9)?.map(ArrayId).zip(row.get(10)?);
    Ok(JobSummary {
        id: JobId(row.get(0)?),
        name: row.get(1)?,
        user: UserId(row.get(2)?),
        user_name: row.get(3)?,
        phase,
        since: row.get(5)?,
        priority: Priority(row.get(6)?),
        gpus: row.get(7)?,
        attempts: row.get(8)?,
        array,
        submitted: row.get(11)?,
        ended: row.get(12)?,
        outcome: row.get::<_, Option<Json<_>>>(13)?.map(|Json(outcome)| outcome),
    })
}

impl Reader {
    /// All jobs that are not over, in the order in which they were accepted.
    pub fn queue(&self) -> Result<Vec<JobSummary>, StoreError> {
        self.rows(&format!("{SUMMARY} WHERE ended IS NULL ORDER BY sequence"), [], read_summary)
    }

    /// A page of jobs, the latest first: those before this one, at most so many. By number, as the clock may have jumped.
    pub fn history(&self, filter: &JobFilter, before: Option<JobId>, most: u32) -> Result<Vec<JobSummary>, StoreError> {
        let Conditions { sql, values } = filter.conditions().and("id < ?", before.map(|job| job.0));
        self.rows(&format!("{SUMMARY} WHERE {sql} ORDER BY id DESC LIMIT {most}"), params_from_iter(values), read_summary)
    }

    /// The same of jobs that are over, those that ended last first.
    pub fn lately_over(&self, filter: &JobFilter, before: Option<JobId>, most: u32) -> Result<Vec<JobSummary>, StoreError> {
        let Conditions { sql, values } = filter.conditions().and("id < ?", before.map(|job| job.0));
        let sql = format!("{SUMMARY} WHERE ended IS NOT NULL AND {sql} ORDER BY ended DESC, id DESC LIMIT {most}");
        self.rows(&sql, params_from_iter(values), read_summary)
    }

    /// How many jobs a user has that are not over.
    pub fn unfinished_of(&self, user: UserId) -> Result<u64, StoreError> {
        let count = self.first("SELECT count(*) FROM jobs WHERE uid = ?1 AND ended IS NULL", params![user.0], |row| row.get(0))?;
        Ok(count.unwrap_or(0))
    }

    /// One job as lists show it, if it is there.
    pub fn summary(&self, id: JobId) -> Result<Option<JobSummary>, StoreError> {
        self.first(&format!("{SUMMARY} WHERE id = ?1"), params![id.0], read_summary)
    }

    /// The job of this index in an array, if it is there.
    pub fn member(&self, array: ArrayId, index: u32) -> Result<Option<JobSummary>, StoreError> {
        self.first(&format!("{SUMMARY} WHERE array = ?1 AND array_index = ?2"), params![array.0, index], read_summary)
    }

    /// A user's latest job, or the latest of exactly this name.
    pub fn latest(&self, user: UserId, name: Option<&str>) -> Result<Option<JobId>, StoreError> {
        let sql = "SELECT id FROM jobs WHERE uid = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY id DESC LIMIT 1";
        self.first(sql, params![user.0, name], |row| row.get(0).map(JobId))
    }

    /// All jobs that are wanted with all that is kept of them, the first first. Nothing is held while the caller works on one.
    pub fn export(&self, filter: &JobFilter) -> impl Iterator<Item = Result<JobHistory, StoreError>> {
        let mut last = JobId(0);
        let mut next = move || {
            loop {
                let Conditions { sql, values } = filter.conditions().and("id > ?", Some(last.0));
                let sql = format!("SELECT id FROM jobs WHERE {sql} ORDER BY id LIMIT 1");
                let Some(id) = self.first(&sql, params_from_iter(values), |row| row.get(0).map(JobId))? else { return Ok(None) };
                last = id;
                // Forgotten in between: on to the next.
                if let Some(job) = self.job(id)? {
                    return Ok(Some(job));
                }
            }
        };
        let mut failed = false;
        iter::from_fn(move || {
            let item = if failed { None } else { next().transpose() };
            failed = matches!(item, Some(Err(_)));
            item
        })
    }
}
