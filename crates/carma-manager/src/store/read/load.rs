//! What a manager needs to continue after a restart.

use std::collections::BTreeMap;

use carma_core::{Job, JobId, Seconds, ServerId, Time};
use rusqlite::Row;

use super::arrays::JobStates;
use super::job::{StoredAttempt, attempts_where, read_attempt};
use super::{Reader, number};
use crate::cluster::{JoinedServer, Pilot, Pool};
use crate::request::Owner;
use crate::store::change::{DrainCause, Drained, MachineChange};
use crate::store::columns::{Json, Named};
use crate::store::error::StoreError;
use crate::store::schema::{CLOCK, NEXT_SERVER};
use crate::units::UnixMillis;

/// Everything that is not over.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Unfinished jobs, in the order of submission.
    pub jobs: Vec<UnfinishedJob>,
    /// Attempts of those jobs without a recorded end.
    pub running: Vec<StoredAttempt>,
    /// Jobs that cannot be parsed, or have an attempt that cannot, and why. They are left alone.
    pub unreadable: Vec<(JobId, String)>,
    /// Drained devices.
    pub drained: Vec<Drained>,
    /// Servers of agents.
    pub servers: Vec<JoinedServer>,
    /// The number of the next server.
    pub next_server: ServerId,
    /// Pools of pilots.
    pub pools: Vec<Pool>,
    /// Pilots that are not over.
    pub pilots: Vec<Pilot>,
    /// Settings of the machine that must be restored.
    pub machine_changes: Vec<MachineChange>,
    /// The latest recorded time of the manager: it continues from there.
    pub clock: Time,
}

/// An unfinished job, without its request, whose environment may be large: [`Reader::request`] has it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedJob {
    /// The core's state of it.
    pub job: Job,
    /// The rest.
    pub meta: JobMeta,
}

/// What a running manager remembers of an unfinished job besides the core's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobMeta {
    /// Its name.
    pub name: Option<String>,
    /// Its user.
    pub owner: Owner,
    /// When it was submitted.
    pub submitted: UnixMillis,
}

const UNFINISHED: &str = "SELECT id, state, array, array_index, name, uid, gid, user, submitted FROM jobs
    LEFT JOIN job_states ON job_states.job = jobs.id WHERE ended IS NULL ORDER BY sequence";

fn read_unfinished(row: &Row<'_>, states: &JobStates) -> rusqlite::Result<UnfinishedJob> {
    let job = states.read(row, [1, 0, 2, 3])?;
    let owner = Owner { uid: row.get(5)?, gid: row.get(6)?, name: row.get(7)? };
    Ok(UnfinishedJob { job, meta: JobMeta { name: row.get(4)?, owner, submitted: row.get(8)? } })
}

impl Reader {
    /// Everything that a restarted manager continues with.
    pub fn load(&self) -> Result<Loaded, StoreError> {
        self.in_one_state(|| {
            let mut unreadable = BTreeMap::new();
            let states = self.job_states(None)?;
            let mut jobs = self.parsed(UNFINISHED, |row| read_unfinished(row, &states), &mut unreadable)?;
            let attempts = attempts_where("ended IS NULL ORDER BY job, number");
            let mut running = self.parsed(&attempts, read_attempt, &mut unreadable)?;
            jobs.retain(|unfinished| !unreadable.contains_key(&unfinished.job.id()));
            running.retain(|stored| !unreadable.contains_key(&stored.attempt.job));
            Ok(Loaded {
                jobs,
                running,
                unreadable: unreadable.into_iter().collect(),
                drained: self.rows("SELECT device, since, reason, drained_by FROM drained ORDER BY device", [], |row| {
                    let Named(device) = row.get(0)?;
                    Ok(Drained { device, since: row.get(1)?, cause: DrainCause::of(row.get(2)?, row.get(3)?) })
                })?,
                servers: self.rows("SELECT server FROM servers ORDER BY id", [], |row| row.get(0).map(|Json(server)| server))?,
                next_server: ServerId(self.run(|connection| number(connection, NEXT_SERVER))?.unwrap_or(1) as u32),
                pools: self.rows("SELECT pool FROM pools ORDER BY name", [], |row| row.get(0).map(|Json(pool)| pool))?,
                pilots: self.rows("SELECT pilot FROM pilots ORDER BY name", [], |row| row.get(0).map(|Json(pilot)| pilot))?,
                machine_changes: self
                    .rows("SELECT change FROM machine_changes ORDER BY change", [], |row| row.get(0).map(|Json(change)| change))?,
                clock: self.clock()?,
            })
        })
    }

    /// Rows that start with a job's number, as far as they can be parsed. The jobs of the others are recorded with the error.
    fn parsed<T>(
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
