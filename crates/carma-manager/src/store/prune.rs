//! Pruning: deletes finished jobs, events and samples that are old or too many, in small steps so that other writes do not wait.

use std::time::Duration;

use carma_core::JobId;
use rusqlite::params;
use rusqlite::types::FromSql;
use thiserror::Error;

use super::Store;
use super::change::Change;
use super::error::{StoreError, WriteError};
use super::read::Reader;
use super::schema::NOT_NEEDED;
use super::submission_keys::KEPT_FOR;
use crate::units::{UnixMillis, UnixMinute};

/// Rows that one commit deletes.
const AT_ONCE: u64 = 500;
/// Pages that are returned to the file system at the end, 64 MiB.
const PAGES: u32 = 16_384;

/// What is kept, and for how long. Unfinished jobs are always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Finished jobs, with their attempts and events. The number is per user: a user with many jobs costs others nothing. A job that may have left a
    /// checkpoint is deleted by age only.
    pub jobs: KeepRule,
    /// Events. The number is per user, and for the machine's events.
    pub events: KeepRule,
    /// Samples of all GPUs together.
    pub samples: KeepRule,
}

/// How many of a kind are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepRule {
    /// How long.
    pub age: Duration,
    /// How many.
    pub most: u64,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64, most| KeepRule { age: Duration::from_secs(days * 86_400), most };
        Self { jobs: days(365, 100_000), events: days(30, 1_000_000), samples: days(30, 1_000_000) }
    }
}

impl KeepRule {
    /// The earliest time that is kept.
    fn since(self, now: UnixMillis) -> UnixMillis {
        UnixMillis(now.0.saturating_sub(self.age.as_millis() as u64))
    }
}

/// How many rows were deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs.
    pub jobs: u64,
    /// Events, besides those of deleted jobs.
    pub events: u64,
    /// Samples.
    pub samples: u64,
}

/// The steps that are left.
struct Steps(u32);

/// Why pruning stopped early.
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
    /// Deletes everything beyond the limits. Other writes and reads continue meanwhile.
    pub fn prune(&self, retention: &Retention, now: UnixMillis) -> Result<Pruned, PruneError> {
        Ok(self.prune_some(retention, now, u32::MAX)?.0)
    }

    /// The same, in this many steps at most. Answers also whether it is done: otherwise, the next call continues.
    pub fn prune_some(&self, retention: &Retention, now: UnixMillis, steps: u32) -> Result<(Pruned, bool), PruneError> {
        let mut steps = Steps(steps);
        let pruned = self.prune_within(retention, now, &mut steps)?;
        Ok((pruned, steps.0 > 0))
    }

    fn prune_within(&self, retention: &Retention, now: UnixMillis, steps: &mut Steps) -> Result<Pruned, PruneError> {
        let reader = self.reader()?;
        self.write([Change::SubmissionsDeleted { before: UnixMillis(now.0.saturating_sub(KEPT_FOR)) }]).wait()?;
        let pruned = Pruned {
            jobs: self.prune_jobs(&reader, retention.jobs, now, steps)?,
            events: self.prune_events(&reader, retention.events, now, steps)?,
            samples: self.delete_in_steps(steps, || reader.samples_to_delete(retention.samples, now))?,
        };
        if pruned != Pruned::default() {
            self.write([Change::SpaceReleased { pages: PAGES }]).wait()?;
        }
        Ok(pruned)
    }

    fn prune_jobs(&self, reader: &Reader, keep: KeepRule, now: UnixMillis, steps: &mut Steps) -> Result<u64, PruneError> {
        let jobs = |jobs: Vec<JobId>| counted(jobs, Change::JobsDeleted);
        let mut deleted = self.delete_in_steps(steps, || reader.old_jobs(keep.since(now)).map(jobs))?;
        for (user, mut excess) in reader.users_with_jobs_above(keep.most)? {
            let mut last = (UnixMillis(0), JobId(0));
            deleted += self.delete_in_steps(steps, || {
                let page = reader.finished_jobs(user, last, excess.min(AT_ONCE))?;
                excess -= page.len() as u64;
                last = page.last().copied().unwrap_or(last);
                Ok(jobs(page.into_iter().map(|(_, id)| id).collect()))
            })?;
        }
        Ok(deleted)
    }

    fn prune_events(&self, reader: &Reader, keep: KeepRule, now: UnixMillis, steps: &mut Steps) -> Result<u64, PruneError> {
        let events = |events: Vec<u64>| counted(events, Change::EventsDeleted);
        // Events of unfinished jobs stay, and are passed once.
        let mut passed = 0;
        let mut deleted = self.delete_in_steps(steps, || {
            let page = reader.old_events(keep.since(now), passed)?;
            passed = page.last().copied().unwrap_or(passed);
            Ok(events(page))
        })?;
        if steps.0 == 0 {
            return Ok(deleted);
        }
        for (user, mut excess) in reader.users_with_events_above(keep.most)? {
            let mut last = 0;
            deleted += self.delete_in_steps(steps, || {
                let page = reader.events_of(user, last, excess.min(AT_ONCE))?;
                excess -= page.len() as u64;
                last = page.last().copied().unwrap_or(last);
                Ok(events(page))
            })?;
        }
        Ok(deleted)
    }

    /// Deletes step by step, and counts the rows.
    fn delete_in_steps(
        &self,
        steps: &mut Steps,
        mut next: impl FnMut() -> Result<Option<(Change, u64)>, StoreError>,
    ) -> Result<u64, PruneError> {
        let mut deleted = 0;
        while steps.0 > 0 {
            let Some((change, rows)) = next()? else { break };
            steps.0 -= 1;
            self.write([change]).wait()?;
            deleted += rows;
        }
        Ok(deleted)
    }
}

/// A step with the number of its rows; none if nothing is left.
fn counted<T>(rows: Vec<T>, change: fn(Vec<T>) -> Change) -> Option<(Change, u64)> {
    let count = rows.len() as u64;
    (count > 0).then(|| (change(rows), count))
}

/// Rows that may be deleted, in steps.
impl Reader {
    fn old_jobs(&self, since: UnixMillis) -> Result<Vec<JobId>, StoreError> {
        let sql = "SELECT id FROM jobs WHERE ended < ?1 ORDER BY ended LIMIT ?2";
        self.rows(sql, params![since, AT_ONCE], |row| row.get(0).map(JobId))
    }

    /// Users with too many finished jobs, and how many too many.
    fn users_with_jobs_above(&self, most: u64) -> Result<Vec<(u32, u64)>, StoreError> {
        let sql = "SELECT uid, count(*) FROM jobs WHERE ended IS NOT NULL GROUP BY uid";
        self.excess(sql, most)
    }

    /// The next finished jobs of a user without checkpoints, in the order of their ends.
    fn finished_jobs(&self, user: u32, after: (UnixMillis, JobId), most: u64) -> Result<Vec<(UnixMillis, JobId)>, StoreError> {
        let sql = "SELECT ended, id FROM jobs WHERE uid = ?1 AND ended IS NOT NULL AND (ended, id) > (?2, ?3) \
                   AND (attempts = 0 OR NOT coalesce((SELECT json_extract(request, '$.may_checkpoint') FROM requests WHERE job = id), \
                   (SELECT json_extract(request, '$.may_checkpoint') FROM arrays WHERE arrays.array = jobs.array), 0)) \
                   ORDER BY ended, id LIMIT ?4";
        self.rows(sql, params![user, after.0, after.1.0, most], |row| Ok((row.get(0)?, JobId(row.get(1)?))))
    }

    fn old_events(&self, since: UnixMillis, after: u64) -> Result<Vec<u64>, StoreError> {
        // From the first on, up to the first that is not old.
        let sql = format!("SELECT sequence, at FROM events WHERE sequence > ?1 AND {NOT_NEEDED} ORDER BY sequence LIMIT ?2");
        let first: Vec<(u64, UnixMillis)> = self.rows(&sql, params![after, AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(first.into_iter().take_while(|(_, at)| *at < since).map(|(sequence, _)| sequence).collect())
    }

    /// Users whose finished jobs have too many events, and how many too many; no user: events of the machine.
    fn users_with_events_above(&self, most: u64) -> Result<Vec<(Option<u32>, u64)>, StoreError> {
        let sql =
            format!("SELECT jobs.uid, count(*) FROM events LEFT JOIN jobs ON jobs.id = events.job WHERE {NOT_NEEDED} GROUP BY jobs.uid");
        self.excess(&sql, most)
    }

    /// The next events of a user's finished jobs, or of the machine.
    fn events_of(&self, user: Option<u32>, after: u64, most: u64) -> Result<Vec<u64>, StoreError> {
        let sql = format!(
            "SELECT events.sequence FROM events LEFT JOIN jobs ON jobs.id = events.job \
             WHERE events.sequence > ?2 AND jobs.uid IS ?1 AND {NOT_NEEDED} ORDER BY events.sequence LIMIT ?3"
        );
        self.rows(&sql, params![user, after, most], |row| row.get(0))
    }

    /// The owners whose count is above the limit, and by how much.
    fn excess<T: FromSql>(&self, sql: &str, most: u64) -> Result<Vec<(T, u64)>, StoreError> {
        let counts: Vec<(T, u64)> = self.rows(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(counts.into_iter().filter(|(_, count)| *count > most).map(|(owner, count)| (owner, count - most)).collect())
    }

    fn samples_to_delete(&self, keep: KeepRule, now: UnixMillis) -> Result<Option<(Change, u64)>, StoreError> {
        let samples = self.first("SELECT count(*) FROM samples", [], |row| row.get(0))?;
        let excess = samples.unwrap_or(0_u64).saturating_sub(keep.most);
        let minute = |offset: u64| {
            let sql = "SELECT minute FROM samples ORDER BY minute LIMIT 1 OFFSET ?1";
            self.first(sql, params![offset], |row| row.get::<_, UnixMinute>(0))
        };
        // Whole minutes are deleted; each step deletes a few.
        let too_many = if excess > 0 { minute(excess - 1)?.map(|last| UnixMinute(last.0 + 1)) } else { None };
        let wanted = too_many.max(Some(keep.since(now).minute()));
        let step = minute(AT_ONCE)?.map(|last| UnixMinute(last.0 + 1));
        let before = step.map_or(wanted, |step| wanted.min(Some(step)));
        let Some(before) = before else { return Ok(None) };
        let rows = self.count_before(before)?;
        Ok((rows > 0).then_some((Change::SamplesDeleted { before }, rows)))
    }

    fn count_before(&self, minute: UnixMinute) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM samples WHERE minute < ?1";
        Ok(self.first(sql, params![minute], |row| row.get(0))?.unwrap_or(0))
    }
}
