//! A table of submission times and workloads, as [`Trace::write_csv`](crate::Trace::write_csv) writes it.

use carma_core::Seconds;

use super::super::TraceJob;
use super::super::TraceProblem;
use super::table::{Header, ReadRow};
use super::{Format, Kind};

/// CARMA's own format.
pub(super) const FORMAT: Format = Format {
    name: "CSV of submissions",
    kind: Kind::Table { is: |header| header.find(SUBMITTED).is_some() || header.find(WORKLOAD).is_some(), header: None, rows },
};

/// Names of the time column.
const SUBMITTED: &[&str] = &["submit_time_s", "submit", "arrival_s", "arrival", "time"];
/// Names of the workload column.
const WORKLOAD: &[&str] = &["task", "workload", "job"];

/// GPUs and duration are the workload's unless the row has its own; a row without a workload must have both.
fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    if header.has(&["attempt", "launched", "peak_mib"]) {
        return Err(TraceProblem::OfExport);
    }
    let submitted = header.need(SUBMITTED)?;
    let task = header.need(WORKLOAD)?;
    let gpus = header.find(&["gpus"]);
    let duration = header.find(&["exclusive_exec_s", "duration", "duration_s"]);
    let owner = header.find(&["user", "owner"]);
    let name = header.find(&["idx", "name", "id"]);
    Ok(Box::new(move |row, draft| {
        let workload = row.text(task).map(|name| draft.workload(name)).transpose()?;
        let missing = |what: &str| TraceProblem::Missing(format!("{what} of a job without a workload"));
        let gpus = match (gpus.filter(|_| row.optional(gpus).is_some()), workload) {
            (Some(column), _) => row.count(column)?,
            (None, Some(id)) => draft.catalogue().get(id).gpus(),
            (None, None) => return Err(missing("gpus")),
        };
        if gpus == 0 {
            return Err(TraceProblem::invalid("gpus", "0", "1 or more"));
        }
        let duration = duration.map(|column| row.seconds(column)).transpose()?.flatten();
        if duration == Some(Seconds::ZERO) {
            return Err(TraceProblem::invalid("duration", "0", "more than 0"));
        }
        if duration.is_none() && workload.is_none() {
            return Err(missing("duration"));
        }
        let submitted = draft.moment(submitted.name, row.need(submitted)?)?;
        let name = row.optional(name).map_or_else(|| draft.next_name(), str::to_owned);
        draft.add(TraceJob { name, submitted, gpus, workload, duration, owner: row.optional(owner).map(str::to_owned) })
    }))
}
