//! Answers to submissions, by user and key.

use carma_core::JobId;
use rusqlite::{Connection, params};

use super::change::KeyedSubmission;
use super::columns::Json;
use super::error::{ApplyError, StoreError};
use super::read::Reader;
use crate::submission_key::SubmissionKey;
use crate::units::UnixMillis;

/// How long an answer is kept.
pub(super) const KEPT_FOR: u64 = 24 * 3_600_000;
/// Answers that are kept per user, the latest.
const MOST_PER_USER: u32 = 1000;

/// Keeps an answer, and deletes those of this user that are old or too many.
pub(super) fn keep(connection: &Connection, submission: &KeyedSubmission, at: UnixMillis) -> Result<(), ApplyError> {
    let KeyedSubmission { uid, key, first, jobs, notes } = submission;
    let sql = "INSERT OR REPLACE INTO submission_keys (uid, key, at, first, jobs, notes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![uid, key.as_str(), at, first.0, jobs, Json(notes)])?;
    let sql = "DELETE FROM submission_keys WHERE uid = ?1 AND (at < ?2
        OR at <= ifnull((SELECT at FROM submission_keys WHERE uid = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?3), -1))";
    connection.prepare_cached(sql)?.execute(params![uid, at.0.saturating_sub(KEPT_FOR), MOST_PER_USER])?;
    Ok(())
}

/// Deletes old answers of all users.
pub(super) fn delete(connection: &Connection, before: UnixMillis) -> Result<(), ApplyError> {
    connection.prepare_cached("DELETE FROM submission_keys WHERE at < ?1")?.execute(params![before])?;
    Ok(())
}

impl Reader {
    /// The answer to a user's earlier submission with this key.
    pub fn submission(&self, uid: u32, key: &SubmissionKey) -> Result<Option<KeyedSubmission>, StoreError> {
        let sql = "SELECT first, jobs, notes FROM submission_keys WHERE uid = ?1 AND key = ?2";
        self.first(sql, params![uid, key.as_str()], |row| {
            let Json(notes) = row.get(2)?;
            Ok(KeyedSubmission { uid, key: key.clone(), first: JobId(row.get(0)?), jobs: row.get(1)?, notes })
        })
    }
}
