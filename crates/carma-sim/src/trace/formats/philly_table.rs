//! Tables made from Philly's job log: `timestamp,duration,num_gpus,gpu_time,cluster`.

use super::super::{Skip, TraceJob, TraceProblem};
use super::table::{Header, ReadRow};

/// The owner is the virtual cluster.
pub(super) fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    let submitted = header.need(&["timestamp"])?;
    let duration = header.need(&["duration"])?;
    let gpus = header.need(&["num_gpus"])?;
    let cluster = header.find(&["cluster", "vc"]);
    let name = header.find(&["job_id", "jobid"]);
    Ok(Box::new(move |row, draft| {
        let count = row.count(gpus)?;
        let time = row.seconds(duration)?.filter(|time| time.get() > 0.0);
        let submitted = draft.moment(submitted.name, row.need(submitted)?)?;
        match (count, time) {
            (0, _) => draft.skip(Skip::NoGpu),
            (_, None) => draft.skip(Skip::NeverRan),
            _ => {
                let name = row.optional(name).map_or_else(|| draft.next_name(), str::to_owned);
                let owner = row.optional(cluster).map(str::to_owned);
                draft.add(TraceJob { name, submitted, gpus: count, workload: None, duration: time, owner })?;
            }
        }
        Ok(())
    }))
}
