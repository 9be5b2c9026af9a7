//! Secrets in requests: kept while the job may run, hidden once it is over.

use carma_core::JobId;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::error::{ApplyError, StoreError};
use super::read::Reader;
use crate::request::{HIDDEN, JobRequest};
use crate::submission::looks_secret;

/// Whether a request has secrets.
pub(super) fn has_secrets(request: &JobRequest) -> bool {
    request.environment.keys().any(|name| looks_secret(name))
}

/// Lists a new job if its request has secrets.
pub(super) fn list(connection: &Connection, job: JobId, request: &JobRequest) -> Result<(), ApplyError> {
    if has_secrets(request) {
        connection.prepare_cached("INSERT INTO secrets (job) VALUES (?1)")?.execute(params![job.0])?;
    }
    Ok(())
}

/// Hides the secrets of finished jobs. Their old bytes are overwritten, not only released.
pub(super) fn hide(connection: &Connection, jobs: &[JobId]) -> Result<(), ApplyError> {
    connection.pragma_update(None, "secure_delete", true)?;
    let hidden = jobs.iter().try_for_each(|job| hide_of(connection, *job));
    connection.pragma_update(None, "secure_delete", false)?;
    hidden
}

fn hide_of(connection: &Connection, job: JobId) -> Result<(), ApplyError> {
    let finished = connection.prepare_cached("SELECT 1 FROM jobs WHERE id = ?1 AND ended IS NOT NULL")?.exists(params![job.0])?;
    if !finished {
        return Ok(());
    }
    let mut own = connection.prepare_cached("SELECT request FROM requests WHERE job = ?1")?;
    let own: Option<String> = own.query_row(params![job.0], |row| row.get(0)).optional()?;
    if let Some(hidden) = own.as_deref().and_then(without_secrets) {
        connection.prepare_cached("UPDATE requests SET request = ?2 WHERE job = ?1")?.execute(params![job.0, hidden])?;
    }
    connection.prepare_cached("DELETE FROM secrets WHERE job = ?1")?.execute(params![job.0])?;
    hide_of_array(connection, job)
}

/// Hides the secrets of the array of this job, once no job of it needs them.
fn hide_of_array(connection: &Connection, job: JobId) -> Result<(), ApplyError> {
    let sql = "SELECT arrays.array, arrays.request FROM jobs JOIN arrays ON arrays.array = jobs.array
        WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM secrets WHERE job BETWEEN arrays.array AND last)";
    let unused = connection.prepare_cached(sql)?.query_row(params![job.0], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)));
    let Some((array, request)) = unused.optional()? else { return Ok(()) };
    if let Some(hidden) = without_secrets(&request) {
        connection.prepare_cached("UPDATE arrays SET request = ?2 WHERE array = ?1")?.execute(params![array, hidden])?;
    }
    Ok(())
}

/// The document without the values of secrets; none if it has none. It may be of a version that this one cannot read.
pub(super) fn without_secrets(request: &str) -> Option<String> {
    let mut request: Value = serde_json::from_str(request).ok()?;
    let environment = request.get_mut("environment")?.as_object_mut()?;
    let mut found = false;
    for (_, value) in environment.iter_mut().filter(|(name, value)| looks_secret(name) && **value != HIDDEN) {
        *value = HIDDEN.into();
        found = true;
    }
    found.then(|| request.to_string())
}

impl Reader {
    /// Finished jobs after this one whose secrets are not hidden yet.
    pub fn finished_with_secrets(&self, after: JobId, most: u32) -> Result<Vec<JobId>, StoreError> {
        let sql = "SELECT job FROM secrets JOIN jobs ON id = job WHERE job > ?1 AND ended IS NOT NULL ORDER BY job LIMIT ?2";
        self.rows(sql, params![after.0, most], |row| row.get(0).map(JobId))
    }
}
