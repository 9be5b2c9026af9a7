//! Ends reads that would hold up the manager. Only reads beside a manager without a write-ahead log can do that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::journal::LONGEST_READ;

/// Steps of SQLite between two readings of the clock: well below a millisecond of work.
const STEPS: i32 = 10_000;
/// No read is under way.
const NONE: u64 = 0;

/// The limit of a connection, and when its read began: milliseconds since the connection was opened, plus one.
#[derive(Debug)]
pub(in crate::store) struct ReadLimit {
    opened: Instant,
    began: Arc<AtomicU64>,
}

/// A read that is under way.
#[derive(Debug)]
pub(in crate::store) struct LimitedRead<'a>(&'a ReadLimit);

impl ReadLimit {
    /// Limits the reads of a connection, if they can hold up a manager.
    pub(in crate::store) fn of(connection: &mut Connection) -> rusqlite::Result<Option<Self>> {
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        if mode == "wal" || !is_in_use(connection)? {
            return Ok(None);
        }
        Self::with(connection, LONGEST_READ).map(Some)
    }

    fn with(connection: &mut Connection, longest: Duration) -> rusqlite::Result<Self> {
        let limit = Self { opened: Instant::now(), began: Arc::new(AtomicU64::new(NONE)) };
        let (opened, began) = (limit.opened, Arc::clone(&limit.began));
        let is_over = move || {
            let began = began.load(Ordering::Relaxed);
            began != NONE && elapsed(opened).saturating_sub(began) > longest.as_millis() as u64
        };
        connection.progress_handler(STEPS, Some(is_over))?;
        Ok(limit)
    }

    /// Begins a read, or continues the one that is under way.
    pub(in crate::store) fn begin(&self) -> Option<LimitedRead<'_>> {
        let begins = self.began.compare_exchange(NONE, elapsed(self.opened), Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // Lazily: dropping one ends the read.
        begins.then(|| LimitedRead(self))
    }
}

impl Drop for LimitedRead<'_> {
    fn drop(&mut self) {
        self.0.began.store(NONE, Ordering::Relaxed);
    }
}

fn elapsed(opened: Instant) -> u64 {
    opened.elapsed().as_millis() as u64 + 1
}

/// Whether a manager has the store. One that was killed counts too.
fn is_in_use(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(connection.table_exists(None, "lease")? && connection.query_row("SELECT count(*) FROM lease", [], |row| row.get::<_, u32>(0))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

    #[test]
    fn a_long_read_is_interrupted_and_the_next_one_has_its_own_time() {
        let mut connection = Connection::open_in_memory().unwrap();
        let limit = ReadLimit::with(&mut connection, Duration::from_millis(50)).unwrap();
        for _ in 0..2 {
            let _read = limit.begin().unwrap();
            assert!(limit.begin().is_none(), "queries of one read share its time");
            let error = connection.query_row(ENDLESS, [], |_| Ok(())).unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::OperationInterrupted));
        }
        connection.query_row("SELECT 1", [], |_| Ok(())).unwrap();
    }
}
