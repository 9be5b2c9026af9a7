//! An index of the names of jobs, by every three letters in a row, so that a search need not read all of them.
//!
//! A job has the entry of its own number. The jobs of an array that is stored as one share the entry of its number.

use carma_core::JobId;
use rusqlite::{Connection, params};

use super::error::ApplyError;

/// The shortest text that the index finds, in letters.
pub(super) const SHORTEST: usize = 3;

/// Adds the name of a job, or of all jobs of an array.
pub(super) fn add(connection: &Connection, job: JobId, name: Option<&str>) -> Result<(), ApplyError> {
    let Some(name) = name else { return Ok(()) };
    connection.prepare_cached("INSERT INTO job_names (rowid, name) VALUES (?1, ?2)")?.execute(params![job.0, name])?;
    Ok(())
}

/// A job or an array was deleted.
pub(super) fn delete(connection: &Connection, job: u64) -> Result<(), ApplyError> {
    connection.prepare_cached("DELETE FROM job_names WHERE rowid = ?1")?.execute(params![job])?;
    Ok(())
}

/// What the index is asked for a text; none if it cannot find it.
pub(super) fn phrase(text: &str) -> Option<String> {
    let found = text.chars().count() >= SHORTEST && !text.contains('\0');
    found.then(|| format!("\"{}\"", text.replace('"', "\"\"")))
}
