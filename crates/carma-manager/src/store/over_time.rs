//! How busy ended attempts kept their GPUs over time.

use carma_core::{AttemptId, JobId};
use rusqlite::{Connection, params};

use super::Reader;
use super::columns::{Json, Named};
use super::error::StoreError;
use crate::samples::AttemptUtilisation;
use crate::units::{UnixMillis, UnixMinute};

/// Keeps the utilisation of an attempt that ended. A deleted attempt is ignored.
pub(super) fn keep(connection: &Connection, kept: &AttemptUtilisation, ended: UnixMillis) -> rusqlite::Result<()> {
    let AttemptUtilisation { attempt: AttemptId { job, number }, device, .. } = kept;
    let sql = "INSERT OR REPLACE INTO attempt_utilisation (job, number, device, ended, utilisation)
               SELECT job, number, ?3, ?4, ?5 FROM attempts WHERE job = ?1 AND number = ?2";
    connection.prepare_cached(sql)?.execute(params![job.0, number, Named(device), ended, Json(kept)]).map(drop)
}

/// Deletes what ended before this minute.
pub(super) fn delete(connection: &Connection, before: UnixMinute) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM attempt_utilisation WHERE ended < ?1 * 60000")?.execute(params![before]).map(drop)
}

impl Reader {
    /// How busy the ended attempts of a job kept their GPUs, by attempt.
    pub fn utilisation_of(&self, job: JobId) -> Result<Vec<AttemptUtilisation>, StoreError> {
        let sql = "SELECT utilisation FROM attempt_utilisation WHERE job = ?1 ORDER BY number, device";
        self.rows(sql, params![job.0], |row| row.get(0).map(|Json(kept)| kept))
    }
}
