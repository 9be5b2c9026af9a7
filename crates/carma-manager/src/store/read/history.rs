//! Lists of jobs: the queue, and pages of the history.

use carma_core::{ArrayId, JobId, MiB, Outcome, Priority, Seconds, UserId};
use rusqlite::{Row, ToSql, params, params_from_iter};

use super::Reader;
use super::job::optional;
use crate::ending::{Ending, OutcomeFilter};
use crate::phase::Phase;
use crate::request::ArrayPlace;
use crate::rows::JobSummary;
use crate::store::columns::{Named, array_place};
use crate::store::error::StoreError;
use crate::units::UnixMillis;

/// A time span: from `since` to before `until`; open where unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Its first moment.
    pub since: Option<UnixMillis>,
    /// The first moment after it.
    pub until: Option<UnixMillis>,
}

/// A filter of jobs. Unset fields match all jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Of this user.
    pub user: Option<UserId>,
    /// In this state.
    pub phase: Option<Phase>,
    /// Over, and with such an end.
    pub outcome: Option<OutcomeFilter>,
    /// With this in its name, ignoring case.
    pub name: Option<String>,
    /// With this in its name or its user's name, ignoring case, or as its number.
    pub text: Option<String>,
    /// Of this array.
    pub array: Option<ArrayId>,
    /// Submitted within this.
    pub submitted: Span,
}

/// A job, its owner and its place in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedJob {
    /// The job.
    pub id: JobId,
    /// Its owner.
    pub owner: UserId,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
}

/// The conditions of a query, with their values in order.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    pub(super) fn new() -> Self {
        Self { sql: "TRUE".to_owned(), values: Vec::new() }
    }

    /// Adds a condition, if there is a value.
    pub(super) fn and(mut self, condition: &str, value: Option<impl ToSql + 'static>) -> Self {
        if let Some(value) = value {
            self.sql += " AND ";
            self.sql += condition;
            self.values.push(Box::new(value));
        }
        self
    }
}

/// The jobs that an index of failed ones has.
const FAILED: &str = r#"outcome NOT IN ('"succeeded"', '"cancelled"')"#;

impl OutcomeFilter {
    /// The condition on the document in column `outcome`: a word, or an object with one field.
    const fn condition(self) -> &'static str {
        match self {
            Self::Succeeded => r#"outcome = '"succeeded"'"#,
            Self::Failed => FAILED,
            Self::Oom => r#"outcome IN ('"out_of_memory"', '"host_out_of_memory"')"#,
            Self::TimeLimit => r#"outcome = '"time_limit"'"#,
            Self::Cancelled => r#"outcome = '"cancelled"'"#,
            Self::Lost => r#"outcome IN ('"gpu_lost"', '"mps_server_died"', '"supervisor_lost"', '"server_lost"')"#,
            Self::NotStarted => r#"(outcome LIKE '{"could_not_start"%' OR outcome LIKE '{"dependency_failed"%')"#,
        }
    }
}

impl JobFilter {
    pub(super) fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::new();
        if let Some(text) = &self.text {
            conditions.sql += r" AND (name LIKE ? ESCAPE '\' OR user LIKE ? ESCAPE '\' OR id = ?)";
            let part = containing(text);
            conditions.values.extend([Box::new(part.clone()) as Box<dyn ToSql>, Box::new(part), Box::new(text.trim().parse::<i64>().ok())]);
        }
        let fixed = [
            self.outcome.map(OutcomeFilter::condition),
            self.outcome.filter(|outcome| !matches!(outcome, OutcomeFilter::Succeeded | OutcomeFilter::Cancelled)).map(|_| FAILED),
            self.phase.filter(|phase| *phase != Phase::Done).map(|_| "ended IS NULL"),
        ];
        for condition in fixed.into_iter().flatten() {
            conditions.sql += " AND ";
            conditions.sql += condition;
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

/// A LIKE pattern for texts that contain this text.
fn containing(text: &str) -> String {
    // No name is longer, and SQLite refuses longer patterns.
    let text: String = text.chars().take(1000).collect();
    format!("%{}%", text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_"))
}

const SUMMARY: &str =
    "SELECT id, name, uid, user, phase, since, priority, gpus, attempts, array, array_index, submitted, ended, outcome FROM jobs";

/// What the attempts of a job took, as three more columns.
const TAKEN: &str = "(SELECT sum(attempts.ended - launched) FROM attempts WHERE job = jobs.id),
    (SELECT max(value) FROM attempts, json_each(peaks) WHERE job = jobs.id),
    (SELECT sum(joules) FROM attempts WHERE job = jobs.id)";

/// Selects jobs with what their attempts took.
fn with_taken() -> String {
    SUMMARY.replace(" FROM jobs", &format!(", {TAKEN} FROM jobs"))
}

fn read_summary(row: &Row<'_>) -> rusqlite::Result<JobSummary> {
    let Named(phase) = row.get(4)?;
    let outcome: Option<Outcome> = optional(row, 13)?;
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
        array: array_place(row, 9)?,
        submitted: row.get(11)?,
        ended: row.get(12)?,
        ending: outcome.as_ref().map(Ending::from),
        outcome,
        ran: None,
        peak: None,
        energy: None,
    })
}

fn read_with_taken(row: &Row<'_>) -> rusqlite::Result<JobSummary> {
    let ran = row.get::<_, Option<f64>>(14)?.and_then(|millis| Seconds::new(millis / 1000.0).ok());
    let peak = row.get::<_, Option<u64>>(15)?.map(MiB);
    Ok(JobSummary { ran, peak, energy: row.get(16)?, ..read_summary(row)? })
}

impl Reader {
    /// All unfinished jobs, in the order of submission.
    pub fn queue(&self) -> Result<Vec<JobSummary>, StoreError> {
        self.rows(&format!("{SUMMARY} WHERE ended IS NULL ORDER BY sequence"), [], read_summary)
    }

    /// A page of jobs, the latest first: those before a job, up to a limit. By number, as the clock may have jumped.
    pub fn history(&self, filter: &JobFilter, before: Option<JobId>, most: u32) -> Result<Vec<JobSummary>, StoreError> {
        self.in_one_state(|| {
            let sql = format!("{} WHERE id = ?1", with_taken());
            let numbers = self.numbers(filter, before, most)?;
            let jobs = numbers.into_iter().map(|id| self.first(&sql, params![id], read_with_taken));
            jobs.filter_map(Result::transpose).collect()
        })
    }

    /// The same for finished jobs, those that ended last first.
    pub fn recently_finished(&self, filter: &JobFilter, before: Option<JobId>, most: u32) -> Result<Vec<JobSummary>, StoreError> {
        let after = "(ended, id) < (SELECT ended, id FROM jobs WHERE id = ?)";
        let Conditions { sql, values } = filter.conditions().and(after, before.map(|job| job.0));
        let sql = format!("{} WHERE ended IS NOT NULL AND {sql} ORDER BY ended DESC, id DESC LIMIT {most}", with_taken());
        self.rows(&sql, params_from_iter(values), read_with_taken)
    }

    /// How many unfinished jobs a user has.
    pub fn unfinished_of(&self, user: UserId) -> Result<u64, StoreError> {
        let count = self.first("SELECT count(*) FROM jobs WHERE uid = ?1 AND ended IS NULL", params![user.0], |row| row.get(0))?;
        Ok(count.unwrap_or(0))
    }

    /// One job in the form of lists, if it exists.
    pub fn summary(&self, id: JobId) -> Result<Option<JobSummary>, StoreError> {
        self.first(&format!("{SUMMARY} WHERE id = ?1"), params![id.0], read_summary)
    }

    /// The owner of a job, if it exists.
    pub fn owner(&self, id: JobId) -> Result<Option<UserId>, StoreError> {
        self.first("SELECT uid FROM jobs WHERE id = ?1", params![id.0], |row| row.get(0).map(UserId))
    }

    /// The job of this index in an array, if it exists.
    pub fn member(&self, array: ArrayId, index: u32) -> Result<Option<JobSummary>, StoreError> {
        self.first(&format!("{SUMMARY} WHERE array = ?1 AND array_index = ?2"), params![array.0, index], read_summary)
    }

    /// The jobs of an array with their owners, in order.
    pub fn members(&self, array: ArrayId) -> Result<Vec<OwnedJob>, StoreError> {
        let member = |row: &Row<'_>| Ok(OwnedJob { id: JobId(row.get(0)?), owner: UserId(row.get(1)?), array: array_place(row, 2)? });
        self.rows("SELECT id, uid, array, array_index FROM jobs WHERE array = ?1 ORDER BY id", params![array.0], member)
    }

    /// A user's latest job, or the latest of this name.
    pub fn latest(&self, user: UserId, name: Option<&str>) -> Result<Option<JobId>, StoreError> {
        let Conditions { sql, values } = Conditions::new().and("uid = ?", Some(user.0)).and("name = ?", name.map(str::to_owned));
        let sql = format!("SELECT id FROM jobs WHERE {sql} ORDER BY id DESC LIMIT 1");
        self.first(&sql, params_from_iter(values), |row| row.get(0).map(JobId))
    }
}
