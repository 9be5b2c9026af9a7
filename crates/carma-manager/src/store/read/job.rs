//! One job with its attempts and events.

use carma_core::{AttemptId, JobId, Placement};
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Reader;
use super::arrays::{JobStates, REQUEST, WITH_REQUEST, read_request};
use crate::event::{CancelCause, JobEstimate, JobEvent, NewEvent, StoredEvent};
use crate::request::{JobRequest, Owner};
use crate::store::change::{AttemptEnd, Measured, StoredJob};
use crate::store::columns::{Json, array_place};
use crate::store::error::StoreError;
use crate::store::metrics::{self, COLUMNS};
use crate::units::UnixMillis;

/// A job, its attempts in order, and its timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct JobHistory {
    /// The job.
    pub job: StoredJob,
    /// What explains it.
    pub reasons: JobReasons,
    /// Its attempts.
    pub attempts: Vec<StoredAttempt>,
    /// Its events.
    pub events: Vec<StoredEvent>,
}

/// What explains a job besides the core's state. It is kept as long as the job, unlike events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobReasons {
    /// The user who holds it.
    pub held_by: Option<String>,
    /// Why it was cancelled.
    pub cancelled: Option<CancelCause>,
    /// Its latest estimate.
    pub estimate: Option<JobEstimate>,
}

/// An attempt as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredAttempt {
    /// Which.
    pub attempt: AttemptId,
    /// Where it runs or ran.
    pub placement: Placement,
    /// When it was launched.
    pub launched: UnixMillis,
    /// Its end, once it is over.
    pub end: Option<AttemptEnd>,
}

const EVENT: &str =
    "SELECT events.sequence, at, events.job, kind, body, array, array_index FROM events LEFT JOIN jobs ON jobs.id = events.job";
const ATTEMPT: &str = "SELECT job, number, placement, launched, ended, exit, verdict, peaks, joules, reason, blame, log_bytes";

/// Selects the attempts that meet this condition.
pub(super) fn attempts_where(condition: &str) -> String {
    format!("{ATTEMPT}, {} FROM attempts WHERE {condition}", *COLUMNS)
}

fn read_job(row: &Row<'_>, states: &JobStates) -> rusqlite::Result<(StoredJob, JobReasons)> {
    let (request, job) = (read_request(row, 0)?, states.read(row, [6, 3, 4, 5])?);
    let owner = Owner { uid: row.get(7)?, gid: row.get(8)?, name: row.get(9)? };
    let reasons = JobReasons { held_by: row.get(12)?, cancelled: optional(row, 13)?, estimate: optional(row, 14)? };
    Ok((StoredJob { request, owner, job, submitted: row.get(10)?, ended: row.get(11)? }, reasons))
}

/// An optional document.
pub(super) fn optional<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<Json<T>>>(column)?.map(|Json(value)| value))
}

pub(super) fn read_attempt(row: &Row<'_>) -> rusqlite::Result<StoredAttempt> {
    let Json(placement) = row.get(2)?;
    let end = match row.get(4)? {
        None => None,
        Some(at) => Some(read_end(row, at)?),
    };
    let attempt = AttemptId { job: JobId(row.get(0)?), number: row.get(1)? };
    Ok(StoredAttempt { attempt, placement, launched: row.get(3)?, end })
}

fn read_end(row: &Row<'_>, at: UnixMillis) -> rusqlite::Result<AttemptEnd> {
    let (Json(verdict), Json(peaks)) = (row.get(6)?, row.get(7)?);
    let measured = Measured { peaks, energy: row.get(8)?, utilisation: metrics::read(row, 12)? };
    Ok(AttemptEnd {
        at,
        exit: optional(row, 5)?,
        verdict,
        reason: row.get(9)?,
        blame: optional(row, 10)?,
        measured,
        log_bytes: row.get(11)?,
    })
}

pub(super) fn read_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let Json(body) = row.get(4)?;
    let event = JobEvent::read(&row.get::<_, String>(3)?, body);
    let (at, job, array) = (row.get(1)?, row.get::<_, Option<u64>>(2)?.map(JobId), array_place(row, 5)?);
    Ok(StoredEvent::new(row.get(0)?, NewEvent { at, job, array, event }))
}

impl Reader {
    /// One job, if it exists.
    pub fn job(&self, id: JobId) -> Result<Option<JobHistory>, StoreError> {
        self.in_one_state(|| {
            let sql = format!(
                "SELECT {REQUEST}, job_states.state, uid, gid, user, submitted, ended, held_by, cancelled, estimate FROM {WITH_REQUEST}
                 LEFT JOIN job_states ON job_states.job = jobs.id LEFT JOIN estimates ON estimates.job = jobs.id WHERE jobs.id = ?1"
            );
            let states = self.job_states(Some(id))?;
            let Some((job, reasons)) = self.first(&sql, params![id.0], |row| read_job(row, &states))? else { return Ok(None) };
            let attempts = self.rows(&attempts_where("job = ?1 ORDER BY number"), params![id.0], read_attempt)?;
            let events = self.rows(&format!("{EVENT} WHERE events.job = ?1 ORDER BY events.sequence"), params![id.0], read_event)?;
            Ok(Some(JobHistory { job, reasons, attempts, events }))
        })
    }

    /// The request of a job, if it exists.
    pub fn request(&self, id: JobId) -> Result<Option<JobRequest>, StoreError> {
        self.first(&format!("SELECT {REQUEST} FROM {WITH_REQUEST} WHERE jobs.id = ?1"), params![id.0], |row| read_request(row, 0))
    }

    /// The latest estimate of a job, if it has one.
    pub fn estimate(&self, id: JobId) -> Result<Option<JobEstimate>, StoreError> {
        self.first("SELECT estimate FROM estimates WHERE job = ?1", params![id.0], |row| row.get(0).map(|Json(estimate)| estimate))
    }

    /// Events of all users after this number (0: from the first), up to a limit.
    pub fn events_after(&self, sequence: u64, most: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let sql = format!("{EVENT} WHERE events.sequence > ?1 ORDER BY events.sequence LIMIT ?2");
        self.rows(&sql, params![sequence, most], read_event)
    }
}
