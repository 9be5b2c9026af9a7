//! How each change becomes rows.

use carma_core::{AttemptId, Job, JobId, Placement};
use rusqlite::{CachedStatement, Connection, Params, ffi, params};

use super::change::{AttemptEnd, Change, MinuteMean, NewEvent, StoredJob, utilisation_columns};
use super::columns::{Json, Named};
use super::error::{ApplyError, Refusal};
use super::phase::Phase;
use super::prune::NOT_NEEDED;
use super::units::{UnixMillis, UnixMinute};
use crate::api::Notification;
use crate::metrics::{Tallies, Tally};

/// The number that the next job gets.
pub(super) const NEXT_JOB: &str = "next_job";
/// The manager's own time in milliseconds.
pub(super) const CLOCK: &str = "clock";

/// The last event of which nobody is to be told any more.
pub(super) const TOLD: &str = "told";

/// Writes one change, within a transaction of the caller.
pub(super) fn apply(connection: &Connection, change: &Change) -> Result<(), ApplyError> {
    let to = Target(connection);
    match change {
        Change::JobAccepted(job) => to.accept(job),
        Change::JobChanged { job, at } => to.change_job(job, *at),
        Change::AttemptStarted { attempt, placement, at } => to.start_attempt(*attempt, placement, *at),
        Change::SupervisorSeen { attempt, supervisor } => to.change_attempt(
            *attempt,
            "UPDATE attempts SET supervisor_pid = ?3, supervisor_started = ?4 WHERE job = ?1 AND number = ?2 AND ended IS NULL",
            params![attempt.job.0, attempt.number, supervisor.pid, supervisor.started],
        ),
        Change::AttemptEnded { attempt, end } => to.end_attempt(*attempt, end),
        Change::EventLogged(event) => to.log(event),
        Change::SampleKept(mean) => to.keep_sample(mean),
        Change::MemoryStepped { attempt, device, step } => to.execute(
            "INSERT INTO memory_steps (job, number, device, at, memory) SELECT job, number, ?3, ?4, ?5 FROM attempts WHERE job = ?1 AND number = ?2
             ON CONFLICT DO UPDATE SET memory = excluded.memory",
            params![attempt.job.0, attempt.number, Named(device), step.at, step.memory.0],
        ),
        Change::Tallied(Tallies(tallies)) => tallies.iter().try_for_each(|(tally, more)| to.tally(tally, *more)),
        Change::GpuDrained { device, at } => {
            to.execute("INSERT INTO drained (device, since) VALUES (?1, ?2) ON CONFLICT DO NOTHING", params![Named(device), at])
        }
        Change::GpuResumed { device } => to.execute("DELETE FROM drained WHERE device = ?1", params![Named(device)]),
        Change::MachineChanged(change) => {
            to.execute("INSERT INTO machine_changes (change) VALUES (?1) ON CONFLICT DO NOTHING", params![Json(change)])
        }
        Change::MachineRestored(change) => to.execute("DELETE FROM machine_changes WHERE change = ?1", params![Json(change)]),
        Change::ClockSeen(now) => to.raise(CLOCK, now.milliseconds()),
        Change::NotificationsSet { uid, notifications } => to.set_notifications(*uid, notifications),
        Change::UserTold { uid, by, through } => {
            to.execute("UPDATE notifications SET told = max(told, ?3) WHERE uid = ?1 AND channel = ?2", params![uid, Json(by), through])
        }
        Change::AllTold { through } => to.raise(TOLD, *through),
        Change::JobsForgotten(jobs) => jobs.iter().try_for_each(|job| to.forget(*job)),
        Change::EventsForgotten(events) => {
            let sql = format!("DELETE FROM events WHERE sequence = ?1 AND {NOT_NEEDED}");
            events.iter().try_for_each(|sequence| to.execute(&sql, params![sequence]))
        }
        Change::SamplesForgotten { before } => to.forget_samples(*before),
        Change::RoomReturned { pages } => to.return_room(*pages),
    }
}

/// Where changes go.
struct Target<'a>(&'a Connection);

impl Target<'_> {
    fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, ApplyError> {
        Ok(self.0.prepare_cached(sql)?)
    }

    fn execute(&self, sql: &str, values: impl Params) -> Result<(), ApplyError> {
        self.statement(sql)?.execute(values)?;
        Ok(())
    }

    /// Inserts a row whose key must be new.
    fn insert_new(&self, sql: &str, values: impl Params, duplicate: Refusal) -> Result<(), ApplyError> {
        match self.execute(sql, values) {
            Err(ApplyError::Database(error)) if is_duplicate(&error) => Err(duplicate.into()),
            other => other,
        }
    }

    /// Changes a row that must be there.
    fn update_known(&self, sql: &str, values: impl Params, unknown: Refusal) -> Result<(), ApplyError> {
        if self.statement(sql)?.execute(values)? == 0 { Err(unknown.into()) } else { Ok(()) }
    }

    fn accept(&self, stored: &StoredJob) -> Result<(), ApplyError> {
        let StoredJob { request, owner, job, submitted, ended } = stored;
        let id = job.id();
        let array = job.spec.array;
        self.insert_new(
            "INSERT INTO jobs (id, sequence, name, uid, gid, user, phase, since, priority, gpus, attempts, array, array_index, submitted, ended, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?8, ?14, ?15)",
            params![
                id.0,
                job.place(),
                request.name,
                owner.uid,
                owner.gid,
                owner.name,
                Named(Phase::from(&job.state)),
                submitted,
                job.spec.priority.0,
                job.spec.gpus,
                job.attempts,
                array.map(|member| member.array.0),
                array.map(|member| member.index),
                ended,
                job.state.outcome().map(Json),
            ],
            Refusal::DuplicateJob(id),
        )?;
        self.execute("INSERT INTO requests (job, request) VALUES (?1, ?2)", params![id.0, Json(request)])?;
        self.execute("INSERT INTO standings (job, standing) VALUES (?1, ?2)", params![id.0, Json(job)])?;
        // In the same commit as the job: its number is taken for good, even when the job is forgotten some day.
        self.raise(NEXT_JOB, id.0 + 1)
    }

    fn change_job(&self, job: &Job, at: UnixMillis) -> Result<(), ApplyError> {
        let id = job.id();
        self.update_known(
            "UPDATE jobs SET since = iif(phase = ?2, since, ?3), phase = ?2, priority = ?4, gpus = ?5, attempts = ?6, sequence = ?7,
                 ended = iif(?8 IS NULL, NULL, ifnull(ended, ?3)), outcome = ?8
             WHERE id = ?1",
            params![
                id.0,
                Named(Phase::from(&job.state)),
                at,
                job.spec.priority.0,
                job.spec.gpus,
                job.attempts,
                job.place(),
                job.state.outcome().map(Json)
            ],
            Refusal::UnknownJob(id),
        )?;
        self.execute("UPDATE standings SET standing = ?2 WHERE job = ?1", params![id.0, Json(job)])
    }

    fn start_attempt(&self, attempt: AttemptId, placement: &Placement, at: UnixMillis) -> Result<(), ApplyError> {
        if !self.statement("SELECT 1 FROM jobs WHERE id = ?1")?.exists(params![attempt.job.0])? {
            return Err(Refusal::UnknownJob(attempt.job).into());
        }
        self.insert_new(
            "INSERT INTO attempts (job, number, placement, launched) VALUES (?1, ?2, ?3, ?4)",
            params![attempt.job.0, attempt.number, Json(placement), at],
            Refusal::DuplicateAttempt(attempt),
        )?;
        placement.devices.iter().try_for_each(|granted| {
            self.execute(
                "INSERT INTO stays (job, number, device, promised, launched) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET promised = promised + excluded.promised",
                params![attempt.job.0, attempt.number, Named(granted.device), granted.promised.0, at],
            )
        })
    }

    fn change_attempt(&self, attempt: AttemptId, sql: &str, values: impl Params) -> Result<(), ApplyError> {
        self.update_known(sql, values, Refusal::NotUnderWay(attempt))
    }

    fn end_attempt(&self, attempt: AttemptId, end: &AttemptEnd) -> Result<(), ApplyError> {
        let [smact, smocc, drama, utilisation] = utilisation_columns(&end.measured.utilisation);
        self.change_attempt(
            attempt,
            "UPDATE attempts SET ended = ?3, exit = ?4, verdict = ?5, peaks = ?6, smact = ?7, smocc = ?8, drama = ?9, utilisation = ?10, joules = ?11
             WHERE job = ?1 AND number = ?2 AND ended IS NULL",
            params![
                attempt.job.0,
                attempt.number,
                end.at,
                end.exit.as_ref().map(Json),
                Json(&end.verdict),
                Json(&end.measured.peaks),
                smact,
                smocc,
                drama,
                utilisation,
                end.measured.energy,
            ],
        )?;
        self.execute("UPDATE stays SET ended = ?3 WHERE job = ?1 AND number = ?2", params![attempt.job.0, attempt.number, end.at])
    }

    fn log(&self, event: &NewEvent) -> Result<(), ApplyError> {
        let (kind, body) = event.event.parts();
        self.execute(
            "INSERT INTO events (at, job, kind, body) VALUES (?1, ?2, ?3, ?4)",
            params![event.at, event.job.map(|job| job.0), kind, Json(&body)],
        )
    }

    fn keep_sample(&self, mean: &MinuteMean) -> Result<(), ApplyError> {
        let [smact, smocc, drama, utilisation] = utilisation_columns(&mean.utilisation);
        self.execute(
            "INSERT INTO samples (device, minute, readings, memory_used, smact, smocc, drama, utilisation, power)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET readings = excluded.readings, memory_used = excluded.memory_used, smact = excluded.smact,
                 smocc = excluded.smocc, drama = excluded.drama, utilisation = excluded.utilisation, power = excluded.power
             WHERE excluded.readings > readings",
            params![
                Named(mean.device),
                mean.minute,
                mean.readings,
                mean.memory_used.0,
                smact,
                smocc,
                drama,
                utilisation,
                mean.power.map(|power| power.0)
            ],
        )
    }

    /// An attempt that runs keeps its steps, however old: it may have had the same memory since.
    fn forget_samples(&self, before: UnixMinute) -> Result<(), ApplyError> {
        self.execute("DELETE FROM samples WHERE minute < ?1", params![before])?;
        self.execute(
            "DELETE FROM memory_steps WHERE at < ?1 * 60000 AND (job, number) NOT IN (SELECT job, number FROM attempts WHERE ended IS NULL)",
            params![before],
        )
    }

    fn tally(&self, tally: &Tally, more: f64) -> Result<(), ApplyError> {
        self.execute(
            "INSERT INTO tallies (tally, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = value + excluded.value",
            params![Json(tally), more],
        )
    }

    /// Ways that stay keep what was told by them.
    fn set_notifications(&self, uid: u32, notifications: &[Notification]) -> Result<(), ApplyError> {
        self.execute("UPDATE notifications SET place = -1 WHERE uid = ?1", params![uid])?;
        for (place, Notification { on, by }) in notifications.iter().enumerate() {
            self.execute(
                "INSERT INTO notifications (uid, channel, occasions, place, told)
                 VALUES (?1, ?2, ?3, ?4, ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0))
                 ON CONFLICT DO UPDATE SET occasions = excluded.occasions, place = excluded.place",
                params![uid, Json(by), Json(on), place as u64],
            )?;
        }
        self.execute("DELETE FROM notifications WHERE uid = ?1 AND place = -1", params![uid])
    }

    /// Keeps a number that only ever grows.
    fn raise(&self, name: &str, value: u64) -> Result<(), ApplyError> {
        self.execute(
            "INSERT INTO numbers (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
            params![name, value],
        )
    }

    /// Each step of the vacuum frees one page, so it is asked until it has no more.
    fn return_room(&self, pages: u32) -> Result<(), ApplyError> {
        let mut vacuum = self.0.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut freed = vacuum.query([])?;
        while freed.next()?.is_some() {}
        Ok(self.0.execute_batch("PRAGMA optimize")?)
    }

    /// Whoever asks may have looked a while ago: a job that is not over stays.
    fn forget(&self, job: JobId) -> Result<(), ApplyError> {
        if self.statement("DELETE FROM jobs WHERE id = ?1 AND ended IS NOT NULL")?.execute(params![job.0])? == 1 {
            self.execute("DELETE FROM events WHERE job = ?1", params![job.0])?;
        }
        Ok(())
    }
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
}
