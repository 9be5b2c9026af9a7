//! Arrays and sweeps: what their jobs have in common is stored once, and SQLite makes their rows.

use carma_core::JobId;
use rusqlite::{Connection, Params, params};

use super::change::StoredArray;
use super::columns::{Json, Named};
use super::error::ApplyError;
use super::names;
use super::secrets::has_secrets;
use crate::event::JobEvent;
use crate::phase::Phase;
use crate::request::Owner;
use crate::submission::Template;

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

fn run(connection: &Connection, sql: &str, values: impl Params) -> Result<(), ApplyError> {
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
