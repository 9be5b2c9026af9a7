//! One job with all that became of it.

use carma_core::{AttemptId, JobId, Placement};
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Reader;
use crate::event::JobEvent;
use crate::request::{JobRequest, Owner};
use crate::store::change::{AttemptEnd, Measured, NewEvent, StoredJob, Supervisor, utilisation_of};
use crate::store::columns::Json;
use crate::store::error::StoreError;
use crate::store::units::UnixMillis;

/// A job, its attempts in order, and its timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct JobHistory {
    /// The job.
    pub job: StoredJob,
    /// Its attempts.
    pub attempts: Vec<StoredAttempt>,
    /// What happened to it.
    pub events: Vec<StoredEvent>,
}

/// An attempt with all that is kept of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredAttempt {
    /// Which.
    pub attempt: AttemptId,
    /// Where it runs or ran.
    pub placement: Placement,
    /// When it was to be launched.
    pub launched: UnixMillis,
    /// Who supervises it, once known.
    pub supervisor: Option<Supervisor>,
    /// How it ended, once it has.
    pub end: Option<AttemptEnd>,
}

/// An event and its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredEvent {
    /// Its number; later ones have higher numbers, whatever the clock shows.
    pub sequence: u64,
    /// The event.
    pub event: NewEvent,
    /// What happened, in words.
    #[serde(default)]
    pub text: String,
}

impl StoredEvent {
    /// An event with its number, and its words.
    pub fn new(sequence: u64, event: NewEvent) -> Self {
        Self { sequence, text: event.event.words(), event }
    }
}

const JOB: &str = "SELECT request, standing, uid, gid, user, submitted, ended FROM jobs
    JOIN requests ON requests.job = jobs.id JOIN standings ON standings.job = jobs.id";
pub(super) const ATTEMPT: &str = "SELECT job, number, placement, launched, supervisor_pid, supervisor_started, ended, exit, verdict, peaks,
    smact, smocc, drama, utilisation, joules FROM attempts";

fn read_job(row: &Row<'_>) -> rusqlite::Result<StoredJob> {
    let (Json(request), Json(job)) = (row.get(0)?, row.get(1)?);
    let owner = Owner { uid: row.get(2)?, gid: row.get(3)?, name: row.get(4)? };
    Ok(StoredJob { request, owner, job, submitted: row.get(5)?, ended: row.get(6)? })
}

pub(super) fn read_attempt(row: &Row<'_>) -> rusqlite::Result<StoredAttempt> {
    let Json(placement) = row.get(2)?;
    let supervisor = row.get::<_, Option<u32>>(4)?.zip(row.get(5)?).map(|(pid, started)| Supervisor { pid, started });
    let end = match row.get(6)? {
        None => None,
        Some(at) => Some(read_end(row, at)?),
    };
    let attempt = AttemptId { job: JobId(row.get(0)?), number: row.get(1)? };
    Ok(StoredAttempt { attempt, placement, launched: row.get(3)?, supervisor, end })
}

fn read_end(row: &Row<'_>, at: UnixMillis) -> rusqlite::Result<AttemptEnd> {
    let (Json(verdict), Json(peaks)) = (row.get(8)?, row.get(9)?);
    let utilisation = utilisation_of([row.get(10)?, row.get(11)?, row.get(12)?, row.get(13)?]);
    let exit = row.get::<_, Option<Json<_>>>(7)?.map(|Json(exit)| exit);
    Ok(AttemptEnd { at, exit, verdict, measured: Measured { peaks, utilisation, energy: row.get(14)? } })
}

pub(super) fn read_event(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let Json(body) = row.get(4)?;
    let event = JobEvent::read(&row.get::<_, String>(3)?, body);
    Ok(StoredEvent::new(row.get(0)?, NewEvent { at: row.get(1)?, job: row.get::<_, Option<u64>>(2)?.map(JobId), event }))
}

impl Reader {
    /// One job, if it is there.
    pub fn job(&self, id: JobId) -> Result<Option<JobHistory>, StoreError> {
        self.at_once(|| {
            let Some(job) = self.first(&format!("{JOB} WHERE jobs.id = ?1"), params![id.0], read_job)? else { return Ok(None) };
            let attempts = self.rows(&format!("{ATTEMPT} WHERE job = ?1 ORDER BY number"), params![id.0], read_attempt)?;
            let events =
                self.rows("SELECT sequence, at, job, kind, body FROM events WHERE job = ?1 ORDER BY sequence", params![id.0], read_event)?;
            Ok(Some(JobHistory { job, attempts, events }))
        })
    }

    /// What the user of a job asked for, if the job is there.
    pub fn request(&self, id: JobId) -> Result<Option<JobRequest>, StoreError> {
        self.first("SELECT request FROM requests WHERE job = ?1", params![id.0], |row| row.get(0).map(|Json(request)| request))
    }

    /// Events of everybody that follow this number (0: from the first), at most so many.
    pub fn events_after(&self, sequence: u64, most: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let sql = "SELECT sequence, at, job, kind, body FROM events WHERE sequence > ?1 ORDER BY sequence LIMIT ?2";
        self.rows(sql, params![sequence, most], read_event)
    }
}
