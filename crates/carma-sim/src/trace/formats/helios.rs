//! Helios' tables (`SenseTime`, 2020), and other logs converted to that form:
//! `job_id,user,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue`, with `vc` or without.

use super::super::{Skip, TraceJob, TraceProblem};
use super::table::{Header, ReadRow};
use super::{Format, Kind};

/// Helios' tables.
pub(super) const FORMAT: Format =
    Format { name: "Helios", kind: Kind::Table { is: |header| header.has(&["gpu_num", "submit_time"]), header: None, rows } };

/// The owner is the user, or else the virtual cluster. CPU-only jobs are skipped.
fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    let submitted = header.need(&["submit_time"])?;
    let duration = header.need(&["duration"])?;
    let gpus = header.need(&["gpu_num"])?;
    let name = header.find(&["job_id"]);
    let owner = [header.find(&["user"]), header.find(&["vc"])];
    Ok(Box::new(move |row, draft| {
        let submitted = draft.moment(submitted.name, row.need(submitted)?)?;
        let name = row.optional(name).map_or_else(|| draft.next_name(), str::to_owned);
        let owner = owner.iter().find_map(|column| row.optional(*column)).map(str::to_owned);
        let ran = row.seconds(duration)?.ok_or(Skip::NeverRan);
        draft.add_run(TraceJob { name, submitted, gpus: row.count(gpus)?, workload: None, duration: None, owner }, ran)
    }))
}
