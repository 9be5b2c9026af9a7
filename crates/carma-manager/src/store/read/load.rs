//! What a manager needs to go on after a restart.

use carma_core::{DeviceId, Job, Seconds, Time};
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
    /// Attempts whose end is not known.
    pub running: Vec<StoredAttempt>,
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

const UNFINISHED: &str = "SELECT standing, name, uid, gid, user, submitted FROM jobs JOIN standings ON standings.job = jobs.id
    WHERE ended IS NULL ORDER BY sequence";

fn read_unfinished(row: &Row<'_>) -> rusqlite::Result<UnfinishedJob> {
    let Json(job) = row.get(0)?;
    let owner = Owner { uid: row.get(2)?, gid: row.get(3)?, name: row.get(4)? };
    Ok(UnfinishedJob { job, name: row.get(1)?, owner, submitted: row.get(5)? })
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
            Ok(Loaded {
                jobs: self.rows(UNFINISHED, [], read_unfinished)?,
                running: self.rows(&format!("{ATTEMPT} WHERE ended IS NULL ORDER BY job, number"), [], read_attempt)?,
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

    fn clock(&self) -> Result<Time, StoreError> {
        let milliseconds = self.run(|connection| number(connection, CLOCK))?.unwrap_or(0);
        Ok(Time::ZERO + Seconds::new(milliseconds as f64 / 1000.0).unwrap_or(Seconds::ZERO))
    }
}
