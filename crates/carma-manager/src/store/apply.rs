//! Writes changes as rows.

use carma_core::{AttemptId, Job, JobId, Placement};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, ToSql, ffi, params, params_from_iter};

use super::arrays;
use super::change::{AttemptEnd, Change, Drained, StoredJob};
use super::columns::{Json, Named};
use super::error::{ApplyError, Refusal};
use super::metrics::{self, COLUMNS};
use super::names;
use super::over_time;
use super::schema::{CLOCK, NEXT_JOB, NEXT_SERVER, NOT_NEEDED, NOTIFIED_THROUGH};
use super::secrets;
use super::submission_keys;
use crate::event::{CancelCause, JobEvent, NewEvent};
use crate::notification::Notification;
use crate::phase::Phase;
use crate::samples::MinuteMean;
use crate::tally::{Tallies, Tally};
use crate::units::{UnixMillis, UnixMinute};

/// Writes one change within the caller's transaction.
pub(super) fn apply(connection: &Connection, change: &Change) -> Result<(), ApplyError> {
    let to = Target(connection);
    match change {
        Change::JobAccepted(job) => to.accept(job),
        Change::ArrayAccepted(array) => {
            arrays::accept(connection, array)?;
            to.count_submitted(JobId(array.array.0), array.last(), array.submitted)
        }
        Change::SubmissionKept { submission, at } => submission_keys::keep(connection, submission, *at),
        Change::SubmissionsDeleted { before } => submission_keys::delete(connection, *before),
        Change::JobChanged { job, at } => to.change_job(job, *at),
        Change::AttemptStarted { attempt, placement, at } => to.start_attempt(*attempt, placement, *at),
        Change::AttemptEnded { attempt, end } => to.end_attempt(*attempt, end),
        Change::LogsRemoved(attempts) => attempts.iter().try_for_each(|attempt| {
            to.execute("UPDATE attempts SET log_bytes = 0 WHERE job = ?1 AND number = ?2", params![attempt.job.0, attempt.number])
        }),
        Change::EventLogged(event) => to.log(event),
        Change::SampleStored(mean) => to.store_sample(mean),
        Change::MemoryChanged { attempt, device, step } => to.execute(
            "INSERT INTO memory_steps (job, number, device, at, memory) SELECT job, number, ?3, ?4, ?5 FROM attempts WHERE job = ?1 AND number = ?2
             ON CONFLICT DO UPDATE SET memory = excluded.memory",
            params![attempt.job.0, attempt.number, Named(device), step.at, step.memory.0],
        ),
        Change::UtilisationKept { utilisation, ended } => Ok(over_time::keep(connection, utilisation, *ended)?),
        Change::Tallied(Tallies(tallies)) => tallies.iter().try_for_each(|(tally, more)| to.tally(tally, *more)),
        Change::GpuDrained(Drained { device, since, cause }) => {
            let sql = "INSERT INTO drained (device, since, reason, drained_by) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
            to.execute(sql, params![Named(device), since, cause.faults(), cause.user()])
        }
        Change::GpuResumed { device } => to.execute("DELETE FROM drained WHERE device = ?1", params![Named(device)]),
        Change::ServerChanged(server) => {
            to.raise(NEXT_SERVER, u64::from(server.id.0) + 1)?;
            to.execute("INSERT OR REPLACE INTO servers (id, server) VALUES (?1, ?2)", params![server.id.0, Json(server)])
        }
        Change::ServerGone(server) => to.execute("DELETE FROM servers WHERE id = ?1", params![server.0]),
        Change::PoolChanged(pool) => {
            to.execute("INSERT OR REPLACE INTO pools (name, pool) VALUES (?1, ?2)", params![pool.name.as_str(), Json(pool)])
        }
        Change::PoolGone(name) => to.execute("DELETE FROM pools WHERE name = ?1", params![name.as_str()]),
        Change::PilotChanged(pilot) => {
            to.execute("INSERT OR REPLACE INTO pilots (name, pilot) VALUES (?1, ?2)", params![pilot.name, Json(pilot)])
        }
        Change::PilotGone(name) => to.execute("DELETE FROM pilots WHERE name = ?1", params![name]),
        Change::MachineChanged(change) => {
            to.execute("INSERT INTO machine_changes (change) VALUES (?1) ON CONFLICT DO NOTHING", params![Json(change)])
        }
        Change::MachineRestored(change) => to.execute("DELETE FROM machine_changes WHERE change = ?1", params![Json(change)]),
        Change::ClockAdvanced(now) => to.raise(CLOCK, now.milliseconds()),
        Change::NotificationsSet { uid, notifications } => to.set_notifications(*uid, notifications),
        Change::UserNotified { uid, by, through } => {
            to.execute("UPDATE notifications SET notified = max(notified, ?3) WHERE uid = ?1 AND channel = ?2", params![uid, Json(by), through])
        }
        Change::NotifiedThrough { through } => to.raise(NOTIFIED_THROUGH, *through),
        Change::SecretsHidden(jobs) => secrets::hide(connection, jobs),
        Change::JobsDeleted(jobs) => jobs.iter().try_for_each(|job| to.delete_job(*job)),
        Change::EventsDeleted(events) => {
            let sql = format!("DELETE FROM events WHERE sequence = ?1 AND {NOT_NEEDED}");
            events.iter().try_for_each(|sequence| to.execute(&sql, params![sequence]))
        }
        Change::SamplesDeleted { before } => to.delete_samples(*before),
        Change::SpaceReleased { pages } => to.release_space(*pages),
    }
}

/// The connection that changes are written to.
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

    /// Updates a row that must exist.
    fn update_known(&self, sql: &str, values: impl Params, unknown: Refusal) -> Result<(), ApplyError> {
        if self.statement(sql)?.execute(values)? == 0 { Err(unknown.into()) } else { Ok(()) }
    }

    fn accept(&self, stored: &StoredJob) -> Result<(), ApplyError> {
        let StoredJob { request, owner, job, submitted, ended } = stored;
        let id = job.id();
        let array = job.spec.array;
        self.insert_new(
            "INSERT INTO jobs (id, sequence, name, uid, gid, user, phase, since, priority, gpus, attempts, array, array_index, submitted, ended, outcome, held_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?8, ?14, ?15, ?16)",
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
                request.schedule.hold.then_some(&owner.name),
            ],
            Refusal::DuplicateJob(id),
        )?;
        self.execute("INSERT INTO requests (job, request) VALUES (?1, ?2)", params![id.0, Json(request)])?;
        secrets::list(self.0, id, request)?;
        self.execute("INSERT INTO job_states (job, state) VALUES (?1, ?2)", params![id.0, Json(job)])?;
        names::add(self.0, id, request.name.as_deref())?;
        self.count_submitted(id, id, *submitted)
    }

    /// In the same commit as the jobs: their numbers stay used, even after the jobs are deleted.
    fn count_submitted(&self, first: JobId, last: JobId, at: UnixMillis) -> Result<(), ApplyError> {
        self.execute(
            "INSERT INTO submission_hours (hour, first, last) VALUES (?1 / 3600000, ?2, ?3)
             ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)",
            params![at, first.0, last.0],
        )?;
        self.raise(NEXT_JOB, last.0 + 1)
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
        // A job of an array has none of its own before its first change.
        self.execute(
            "INSERT INTO job_states (job, state) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET state = excluded.state",
            params![id.0, Json(job)],
        )
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
                "INSERT INTO stays (job, number, device, reserved, launched) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET reserved = reserved + excluded.reserved",
                params![attempt.job.0, attempt.number, Named(granted.device), granted.reserved.0, at],
            )
        })
    }

    fn change_attempt(&self, attempt: AttemptId, sql: &str, values: impl Params) -> Result<(), ApplyError> {
        self.update_known(sql, values, Refusal::NotUnderWay(attempt))
    }

    fn end_attempt(&self, attempt: AttemptId, end: &AttemptEnd) -> Result<(), ApplyError> {
        let sql = format!(
            "UPDATE attempts SET ended = ?3, exit = ?4, verdict = ?5, peaks = ?6, joules = ?7, reason = ?8, blame = ?9, log_bytes = ?10, {}
             WHERE job = ?1 AND number = ?2 AND ended IS NULL",
            metrics::listed(|column| format!("{column} = ?"))
        );
        let (exit, verdict, peaks) = (end.exit.as_ref().map(Json), Json(&end.verdict), Json(&end.measured.peaks));
        let (blame, energy) = (end.blame.map(Json), end.measured.energy);
        let values: [&dyn ToSql; 10] =
            [&attempt.job.0, &attempt.number, &end.at, &exit, &verdict, &peaks, &energy, &end.reason, &blame, &end.log_bytes];
        let metrics = metrics::values(&end.measured.utilisation);
        self.change_attempt(attempt, &sql, params_from_iter(values.into_iter().chain(metrics.iter().map(as_sql))))?;
        self.execute("UPDATE stays SET ended = ?3 WHERE job = ?1 AND number = ?2", params![attempt.job.0, attempt.number, end.at])
    }

    fn log(&self, event: &NewEvent) -> Result<(), ApplyError> {
        let (kind, body) = event.event.parts();
        self.execute(
            "INSERT INTO events (at, job, kind, body) VALUES (?1, ?2, ?3, ?4)",
            params![event.at, event.job.map(|job| job.0), kind, Json(&body)],
        )?;
        event.job.map_or(Ok(()), |job| self.keep_reason(job, &event.event))
    }

    /// Stores with the job what an event says about it: the log is shortened by age.
    fn keep_reason(&self, job: JobId, event: &JobEvent) -> Result<(), ApplyError> {
        let hold = |by: Option<&str>| self.execute("UPDATE jobs SET held_by = ?2 WHERE id = ?1", params![job.0, by]);
        let cancel = |cause: CancelCause| self.execute("UPDATE jobs SET cancelled = ?2 WHERE id = ?1", params![job.0, Json(cause)]);
        match event {
            JobEvent::Held(user) => hold(Some(&user.by)),
            JobEvent::Released(_) => hold(None),
            JobEvent::Cancelled(user) => cancel(CancelCause::User(user.by.clone())),
            JobEvent::OverLimit { text } => cancel(CancelCause::OverLimit(text.clone())),
            JobEvent::Estimated(estimate) => self.execute(
                "INSERT OR REPLACE INTO estimates (job, source, estimate) SELECT id, ?2, ?3 FROM jobs WHERE id = ?1",
                params![job.0, estimate.source, Json(estimate)],
            ),
            _ => Ok(()),
        }
    }

    fn store_sample(&self, mean: &MinuteMean) -> Result<(), ApplyError> {
        let sql = format!(
            "INSERT INTO samples (device, minute, readings, memory_used, power, {columns}) VALUES (?, ?, ?, ?, ?, {places})
             ON CONFLICT DO UPDATE SET readings = excluded.readings, memory_used = excluded.memory_used, power = excluded.power, {renewed}
             WHERE excluded.readings > readings",
            columns = *COLUMNS,
            places = metrics::listed(|_| "?".to_owned()),
            renewed = metrics::listed(|column| format!("{column} = excluded.{column}")),
        );
        let (power, metrics) = (mean.power.map(|power| power.0), metrics::values(&mean.utilisation));
        let values: [&dyn ToSql; 5] = [&Named(mean.device), &mean.minute, &mean.readings, &mean.memory_used.0, &power];
        self.execute(&sql, params_from_iter(values.into_iter().chain(metrics.iter().map(as_sql))))
    }

    /// A running attempt keeps its memory steps at any age: its memory may not have changed since.
    fn delete_samples(&self, before: UnixMinute) -> Result<(), ApplyError> {
        self.execute("DELETE FROM samples WHERE minute < ?1", params![before])?;
        self.execute(
            "DELETE FROM memory_steps WHERE at < ?1 * 60000 AND (job, number) NOT IN (SELECT job, number FROM attempts WHERE ended IS NULL)",
            params![before],
        )?;
        Ok(over_time::delete(self.0, before)?)
    }

    fn tally(&self, tally: &Tally, more: f64) -> Result<(), ApplyError> {
        self.execute(
            "INSERT INTO tallies (tally, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = value + excluded.value",
            params![Json(tally), more],
        )
    }

    /// Channels that stay keep their progress.
    fn set_notifications(&self, uid: u32, notifications: &[Notification]) -> Result<(), ApplyError> {
        self.execute("UPDATE notifications SET place = -1 WHERE uid = ?1", params![uid])?;
        for (place, Notification { on, by }) in notifications.iter().enumerate() {
            self.execute(
                "INSERT INTO notifications (uid, channel, occasions, place, notified)
                 VALUES (?1, ?2, ?3, ?4, ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0))
                 ON CONFLICT DO UPDATE SET occasions = excluded.occasions, place = excluded.place",
                params![uid, Json(by), Json(on), place as u64],
            )?;
        }
        self.execute("DELETE FROM notifications WHERE uid = ?1 AND place = -1", params![uid])
    }

    /// Writes a number that only grows.
    fn raise(&self, name: &str, value: u64) -> Result<(), ApplyError> {
        self.execute(
            "INSERT INTO numbers (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
            params![name, value],
        )
    }

    /// Each step of the vacuum frees one page, so it is repeated to the end.
    fn release_space(&self, pages: u32) -> Result<(), ApplyError> {
        let mut vacuum = self.0.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut freed = vacuum.query([])?;
        while freed.next()?.is_some() {}
        Ok(self.0.execute_batch("PRAGMA optimize")?)
    }

    /// The caller may have read the job a while ago: an unfinished job stays.
    fn delete_job(&self, job: JobId) -> Result<(), ApplyError> {
        let sql = "DELETE FROM jobs WHERE id = ?1 AND ended IS NOT NULL RETURNING array";
        let deleted: Option<Option<u64>> = self.statement(sql)?.query_row(params![job.0], |row| row.get(0)).optional()?;
        let Some(array) = deleted else { return Ok(()) };
        self.execute("DELETE FROM events WHERE job = ?1", params![job.0])?;
        arrays::delete_if_empty(self.0, job, array)
    }
}

fn as_sql<T: ToSql>(value: &T) -> &dyn ToSql {
    value
}

fn is_duplicate(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
}
