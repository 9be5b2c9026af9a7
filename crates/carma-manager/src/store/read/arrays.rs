//! Requests and states of jobs whose array is stored as one.

use std::collections::BTreeMap;

use carma_core::{ArrayId, Job, JobId};
use rusqlite::{Row, params};

use super::Reader;
use crate::request::JobRequest;
use crate::store::columns::Json;
use crate::store::error::StoreError;
use crate::submission::Template;

/// The columns of [`read_request`]: the job's own request, or what it follows from.
pub(super) const REQUEST: &str = "requests.request, arrays.request, parameters, jobs.id, jobs.array, array_index";
/// The tables of [`REQUEST`].
pub(super) const WITH_REQUEST: &str = "jobs LEFT JOIN requests ON requests.job = jobs.id LEFT JOIN arrays ON arrays.array = jobs.array";

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
