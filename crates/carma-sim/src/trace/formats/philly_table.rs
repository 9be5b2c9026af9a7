//! Tables made from Philly's job log: `timestamp,duration,num_gpus,gpu_time,cluster`.

use super::super::{Skip, TraceJob, TraceProblem};
use super::table::{Header, ReadRow};
use super::{Format, Kind};

/// Tables made from Philly's log.
pub(super) const FORMAT: Format =
    Format { name: "Philly", kind: Kind::Table { is: |header| header.has(&["timestamp", "num_gpus"]), header: None, rows } };

/// The owner is the virtual cluster.
fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    let submitted = header.need(&["timestamp"])?;
    let duration = header.need(&["duration"])?;
    let gpus = header.need(&["num_gpus"])?;
    let cluster = header.find(&["cluster", "vc"]);
    let name = header.find(&["job_id", "jobid"]);
    Ok(Box::new(move |row, draft| {
        let submitted = draft.moment(submitted.name, row.need(submitted)?)?;
        let name = row.optional(name).map_or_else(|| draft.next_name(), str::to_owned);
        let owner = row.optional(cluster).map(str::to_owned);
        let ran = row.seconds(duration)?.ok_or(Skip::NeverRan);
        draft.add_run(TraceJob { name, submitted, gpus: row.count(gpus)?, workload: None, duration: None, owner }, ran)
    }))
}
