//! The sizes of logs.

use carma_core::{AttemptId, JobId};
use rusqlite::params;

use super::Reader;
use crate::store::StoreError;

impl Reader {
    /// The size of all logs of each user, in bytes.
    pub fn log_bytes(&self) -> Result<Vec<(u32, u64)>, StoreError> {
        let sql = "SELECT uid, sum(log_bytes) FROM attempts JOIN jobs ON jobs.id = attempts.job WHERE log_bytes > 0 GROUP BY uid";
        self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The attempts of a user that ended first and have logs, with the size of these.
    pub fn oldest_logs(&self, user: u32, most: u64) -> Result<Vec<(AttemptId, u64)>, StoreError> {
        let sql = "SELECT job, number, log_bytes FROM attempts JOIN jobs ON jobs.id = attempts.job
                   WHERE uid = ?1 AND log_bytes > 0 AND attempts.ended IS NOT NULL ORDER BY attempts.ended LIMIT ?2";
        self.rows(sql, params![user, most], |row| Ok((AttemptId { job: JobId(row.get(0)?), number: row.get(1)? }, row.get(2)?)))
    }
}
