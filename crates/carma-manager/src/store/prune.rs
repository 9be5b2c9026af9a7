//! Forgetting: what is over and old, or more than is kept, a little at a time so that nobody waits for it long.

use std::time::Duration;

use carma_core::JobId;
use rusqlite::params;
use thiserror::Error;

use super::Store;
use super::change::Change;
use super::error::{StoreError, WriteError};
use super::read::Reader;
use super::units::{UnixMillis, UnixMinute};

/// Rows that one commit forgets.
const AT_ONCE: u64 = 500;
/// Pages that are given back to the file system at the end, 64 MiB.
const PAGES: u32 = 16_384;

/// What is kept, and for how long. What is not over is never forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Jobs that are over, with their attempts and events.
    pub jobs: Keep,
    /// Events.
    pub events: Keep,
    /// Samples.
    pub samples: Keep,
}

/// How many of a kind are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How long.
    pub age: Duration,
    /// How many.
    pub most: u64,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64, most| Keep { age: Duration::from_secs(days * 86_400), most };
        Self { jobs: days(365, 1_000_000), events: days(30, 1_000_000), samples: days(30, 1_000_000) }
    }
}

impl Keep {
    /// The first moment whose things are not too old.
    fn since(self, now: UnixMillis) -> UnixMillis {
        UnixMillis(now.0.saturating_sub(self.age.as_millis() as u64))
    }
}

/// How much was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs.
    pub jobs: u64,
    /// Events, besides those of the jobs.
    pub events: u64,
    /// Samples.
    pub samples: u64,
}

/// Why not everything was forgotten that could have been.
#[derive(Debug, Error)]
pub enum PruneError {
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Store {
    /// Forgets what is not to be kept. Others write and read meanwhile.
    pub fn prune(&self, retention: &Retention, now: UnixMillis) -> Result<Pruned, PruneError> {
        let reader = self.reader()?;
        let pruned = Pruned {
            jobs: self.forget(|| reader.jobs_to_forget(retention.jobs, now))?,
            events: self.forget(|| reader.events_to_forget(retention.events, now))?,
            samples: self.forget(|| reader.samples_to_forget(retention.samples, now))?,
        };
        if pruned != Pruned::default() {
            self.write([Change::RoomReturned { pages: PAGES }]).wait()?;
        }
        Ok(pruned)
    }

    /// Forgets step by step until no step is left, and counts.
    fn forget(&self, next: impl Fn() -> Result<Option<(Change, u64)>, StoreError>) -> Result<u64, PruneError> {
        let mut forgotten = 0;
        while let Some((change, rows)) = next()? {
            self.write([change]).wait()?;
            forgotten += rows;
        }
        Ok(forgotten)
    }
}

/// Events that may be forgotten: a job that is not over keeps all of its own, as who held it and why is known by them alone.
pub(super) const NOT_NEEDED: &str = "(job IS NULL OR job NOT IN (SELECT id FROM jobs WHERE ended IS NULL))";

/// Each says what to forget next, and how many rows that is.
impl Reader {
    fn jobs_to_forget(&self, keep: Keep, now: UnixMillis) -> Result<Option<(Change, u64)>, StoreError> {
        let excess = self.count("SELECT count(*) FROM jobs WHERE ended IS NOT NULL")?.saturating_sub(keep.most);
        // Those that are too many first, then those that are too old: either way those that ended first.
        let sql = "SELECT id FROM jobs WHERE ended IS NOT NULL ORDER BY ended LIMIT ?1";
        let mut jobs = self.rows(sql, params![excess.min(AT_ONCE)], |row| row.get(0).map(JobId))?;
        if jobs.is_empty() {
            let sql = "SELECT id FROM jobs WHERE ended < ?1 ORDER BY ended LIMIT ?2";
            jobs = self.rows(sql, params![keep.since(now), AT_ONCE], |row| row.get(0).map(JobId))?;
        }
        let rows = jobs.len() as u64;
        Ok((rows > 0).then_some((Change::JobsForgotten(jobs), rows)))
    }

    fn events_to_forget(&self, keep: Keep, now: UnixMillis) -> Result<Option<(Change, u64)>, StoreError> {
        let excess = self.count(&format!("SELECT count(*) FROM events WHERE {NOT_NEEDED}"))?.saturating_sub(keep.most).min(AT_ONCE);
        // From the first on, without gaps: by age only as far as all are old.
        let sql = format!("SELECT sequence, at FROM events WHERE {NOT_NEEDED} ORDER BY sequence LIMIT ?1");
        let first: Vec<(u64, UnixMillis)> = self.rows(&sql, params![AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let old = first.iter().take_while(|(_, at)| *at < keep.since(now)).count();
        let rows = old.max(excess as usize);
        Ok(rows
            .checked_sub(1)
            .and_then(|last| first.get(last))
            .map(|(through, _)| (Change::EventsForgotten { through: *through }, rows as u64)))
    }

    fn samples_to_forget(&self, keep: Keep, now: UnixMillis) -> Result<Option<(Change, u64)>, StoreError> {
        let excess = self.count("SELECT count(*) FROM samples")?.saturating_sub(keep.most);
        let minute = |offset: u64| {
            let sql = "SELECT minute FROM samples ORDER BY minute LIMIT 1 OFFSET ?1";
            self.first(sql, params![offset], |row| row.get::<_, UnixMinute>(0))
        };
        // The last minute that is too many goes too, whole; no step takes more than a few.
        let too_many = if excess > 0 { minute(excess - 1)?.map(|last| UnixMinute(last.0 + 1)) } else { None };
        let wanted = too_many.max(Some(keep.since(now).minute()));
        let step = minute(AT_ONCE)?.map(|last| UnixMinute(last.0 + 1));
        let before = step.map_or(wanted, |step| wanted.min(Some(step)));
        let Some(before) = before else { return Ok(None) };
        let rows = self.count_before(before)?;
        Ok((rows > 0).then_some((Change::SamplesForgotten { before }, rows)))
    }

    fn count(&self, sql: &str) -> Result<u64, StoreError> {
        Ok(self.first(sql, [], |row| row.get(0))?.unwrap_or(0))
    }

    fn count_before(&self, minute: UnixMinute) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM samples WHERE minute < ?1";
        Ok(self.first(sql, params![minute], |row| row.get(0))?.unwrap_or(0))
    }
}
