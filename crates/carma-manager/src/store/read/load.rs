//! What a manager needs to go on after a restart.

use std::collections::BTreeMap;

use carma_core::{DeviceId, Job, JobId, Seconds, Time};
use rusqlite::Row;

use super::job::{ATTEMPT, StoredAttempt, read_attempt};
use super::{Reader, number};
use crate::request::Owner;
use crate::store::apply::CLOCK;
use crate::store::change::MachineChange;
use crate::store::columns::{Json, Named};
use crate::store::error::StoreError;
use crate::store::units::UnixMillis;

/// All that is not over.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Jobs that are not over, in the order in which they were accepted.
    pub jobs: Vec<UnfinishedJob>,
    /// Attempts whose end is not known, of those jobs.
    pub running: Vec<StoredAttempt>,
    /// Jobs that are set aside, as they or an attempt of theirs cannot be understood, and why not: all others go on without them.
    pub unreadable: Vec<(JobId, String)>,
    /// Devices that take nothing new.
    pub drained: Vec<Drained>,
    /// What of the machine is to be put back.
    pub machine_changes: Vec<MachineChange>,
    /// The latest of the manager's own time that was kept: it must go on from there.
    pub clock: Time,
}

/// A job that is not over. What its user asked for is left out, with an environment that may be large: [`Reader::request`] has it when it is launched.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedJob {
    /// What the core knows of it.
    pub job: Job,
    /// What people call it.
    pub name: Option<String>,
    /// Whose it is.
    pub owner: Owner,
    /// When it was submitted.
    pub submitted: UnixMillis,
}

const UNFINISHED: &str = "SELECT id, standing, name, uid, gid, user, submitted FROM jobs JOIN standings ON standings.job = jobs.id
    WHERE ended IS NULL ORDER BY sequence";

fn read_unfinished(row: &Row<'_>) -> rusqlite::Result<UnfinishedJob> {
    let Json(job) = row.get(1)?;
    let owner = Owner { uid: row.get(3)?, gid: row.get(4)?, name: row.get(5)? };
    Ok(UnfinishedJob { job, name: row.get(2)?, owner, submitted: row.get(6)? })
}

/// A device that takes nothing new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Which.
    pub device: DeviceId,
    /// Since when.
    pub since: UnixMillis,
}

impl Reader {
    /// Everything that a restarted manager goes on with.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        self.at_once(|| {
            let mut unreadable = BTreeMap::new();
            let mut jobs = self.understood(UNFINISHED, read_unfinished, &mut unreadable)?;
            let attempts = format!("{ATTEMPT} WHERE ended IS NULL ORDER BY job, number");
            let mut running = self.understood(&attempts, read_attempt, &mut unreadable)?;
            jobs.retain(|unfinished| !unreadable.contains_key(&unfinished.job.id()));
            running.retain(|stored| !unreadable.contains_key(&stored.attempt.job));
            Ok(Loaded {
                jobs,
                running,
                unreadable: unreadable.into_iter().collect(),
                drained: self.rows("SELECT device, since FROM drained ORDER BY device", [], |row| {
                    let Named(device) = row.get(0)?;
                    Ok(Drained { device, since: row.get(1)? })
                })?,
                machine_changes: self
                    .rows("SELECT change FROM machine_changes ORDER BY change", [], |row| row.get(0).map(|Json(change)| change))?,
                clock: self.clock()?,
            })
        })
    }

    /// Rows that begin with a job's number, as far as they can be read; the jobs of the others are noted down, with what is wrong.
    fn understood<T>(
        &self,
        sql: &str,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        unreadable: &mut BTreeMap<JobId, String>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.rows(sql, [], |row| {
            let job = JobId(row.get(0)?);
            Ok(read(row).map_err(|error| drop(unreadable.insert(job, error.to_string()))).ok())
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    fn clock(&self) -> Result<Time, StoreError> {
        let milliseconds = self.run(|connection| number(connection, CLOCK))?.unwrap_or(0);
        Ok(Time::ZERO + Seconds::new(milliseconds as f64 / 1000.0).unwrap_or(Seconds::ZERO))
    }
}
