//! Arrays and sweeps: what their jobs have in common is stored once, and SQLite makes their rows.

use std::collections::BTreeMap;

use carma_core::{ArrayId, Job, JobId};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::change::StoredArray;
use super::columns::{Json, Named};
use super::error::{ApplyError, StoreError};
use super::names;
use super::read::Reader;
use super::secrets::{has_secrets, without_secrets};
use crate::event::JobEvent;
use crate::phase::Phase;
use crate::request::{JobRequest, Owner};
use crate::submission::Template;

/// The columns of [`read_request`]: the job's own request, or what it follows from.
pub(super) const REQUEST: &str = "requests.request, arrays.request, parameters, jobs.id, jobs.array, array_index";
/// The tables of [`REQUEST`].
pub(super) const WITH_REQUEST: &str = "jobs LEFT JOIN requests ON requests.job = jobs.id LEFT JOIN arrays ON arrays.array = jobs.array";

/// Writes a new array. Every job gets its row in `jobs`, so that lists and counts need not know about this.
pub(super) fn accept(connection: &Connection, stored: &StoredArray) -> Result<(), ApplyError> {
    let StoredArray { array, indices, template, owner, state, submitted, ended } = stored;
    let Template { request, parameters } = template.as_ref();
    let Owner { uid, gid, name: user } = owner;
    let (first, spec, indices) = (array.0, &state.spec, serde_json::to_string(indices).unwrap_or_default());
    let first_place = state.as_member(JobId(first), 0).place();
    run(
        connection,
        "INSERT INTO arrays (array, last, request, parameters, state) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![first, stored.last().0, Json(request), Json(parameters), Json(state)],
    )?;
    run(
        connection,
        "INSERT INTO jobs (id, sequence, name, uid, gid, user, phase, since, priority, gpus, attempts, array, array_index, submitted, ended, outcome, held_by)
         SELECT ?1 + key, ?2 + key, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?1, value, ?8, ?12, ?13, ?14 FROM json_each(?15)",
        params![
            first,
            first_place,
            request.name,
            uid,
            gid,
            user,
            Named(Phase::from(&state.state)),
            submitted,
            spec.priority.0,
            spec.gpus,
            state.attempts,
            ended,
            state.state.outcome().map(Json),
            request.schedule.hold.then_some(user),
            indices,
        ],
    )?;
    let (kind, body) = JobEvent::Submitted { user: user.clone() }.parts();
    let events = "INSERT INTO events (at, job, kind, body) SELECT ?2, ?1 + key, ?3, ?4 FROM json_each(?5)";
    run(connection, events, params![first, submitted, kind, Json(&body), indices])?;
    names::add(connection, JobId(first), request.name.as_deref())?;
    if has_secrets(request) {
        run(connection, "INSERT INTO secrets (job) SELECT ?1 + key FROM json_each(?2)", params![first, indices])?;
    }
    Ok(())
}

/// A job was deleted: what the jobs of its array have in common is deleted with the last one.
pub(super) fn delete_if_empty(connection: &Connection, job: JobId, array: Option<u64>) -> Result<(), ApplyError> {
    let stored = connection.prepare_cached("SELECT 1 FROM arrays WHERE array = ?1")?.exists(params![array])?;
    let Some(array) = array.filter(|_| stored) else { return names::delete(connection, job.0) };
    let sql = "DELETE FROM arrays WHERE array = ?1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.array = ?1)";
    if connection.prepare_cached(sql)?.execute(params![array])? > 0 { names::delete(connection, array) } else { Ok(()) }
}

/// Hides the secrets of the array of this job, once no job of it needs them.
pub(super) fn hide_secrets(connection: &Connection, job: JobId) -> Result<(), ApplyError> {
    let sql = "SELECT arrays.array, arrays.request FROM jobs JOIN arrays ON arrays.array = jobs.array
        WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM secrets WHERE job BETWEEN arrays.array AND last)";
    let unused = connection.prepare_cached(sql)?.query_row(params![job.0], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)));
    let Some((array, request)) = unused.optional()? else { return Ok(()) };
    without_secrets(&request)
        .map_or(Ok(()), |hidden| run(connection, "UPDATE arrays SET request = ?2 WHERE array = ?1", params![array, hidden]))
}

fn run(connection: &Connection, sql: &str, values: impl Params) -> Result<(), ApplyError> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// The request of a job, from the columns [`REQUEST`] that begin here.
pub(super) fn read_request(row: &Row<'_>, column: usize) -> rusqlite::Result<JobRequest> {
    if let Some(Json(own)) = row.get(column)? {
        return Ok(own);
    }
    let (Json(request), Json(parameters)) = (row.get(column + 1)?, row.get(column + 2)?);
    let (id, array): (u64, u64) = (row.get(column + 3)?, row.get(column + 4)?);
    let place = id.saturating_sub(array) as usize;
    Ok(Template { request, parameters }.request(place, row.get(column + 5)?, Some(ArrayId(array))))
}

/// The state of each array, from which those of its jobs follow; or why it cannot be read.
pub(super) struct JobStates(BTreeMap<u64, Result<Job, String>>);

impl JobStates {
    /// The state of a job: its own, or what follows from that of its array. The columns are state, number, array and index.
    pub(super) fn read(&self, row: &Row<'_>, columns: [usize; 4]) -> rusqlite::Result<Job> {
        let [own, id, array, index] = columns;
        if let Some(Json(job)) = row.get(own)? {
            return Ok(job);
        }
        let (array, index): (u64, u32) = (row.get(array)?, row.get(index)?);
        let unreadable = |why: &str| rusqlite::Error::FromSqlConversionFailure(own, rusqlite::types::Type::Text, why.to_owned().into());
        match self.0.get(&array) {
            Some(Ok(state)) => Ok(state.as_member(JobId(row.get(id)?), index)),
            Some(Err(why)) => Err(unreadable(why)),
            None => Err(unreadable("its state is missing")),
        }
    }
}

impl Reader {
    /// Those of all arrays with jobs that are not over, or of one.
    pub(super) fn job_states(&self, of: Option<JobId>) -> Result<JobStates, StoreError> {
        let sql = "SELECT array, state FROM arrays
            WHERE array IN (SELECT array FROM jobs WHERE id = ?1 UNION SELECT array FROM jobs WHERE ?1 IS NULL AND ended IS NULL)";
        let state = |row: &Row<'_>| {
            let job: rusqlite::Result<Json<Job>> = row.get(1);
            Ok((row.get(0)?, job.map(|Json(job)| job).map_err(|error| error.to_string())))
        };
        Ok(JobStates(self.rows(sql, params![of.map(|job| job.0)], state)?.into_iter().collect()))
    }
}
