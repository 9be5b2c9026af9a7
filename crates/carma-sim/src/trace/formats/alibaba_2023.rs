//! Alibaba's `openb_pod_list` of 2023:
//! `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time`.

use super::super::draft::time_between;
use super::super::{TraceJob, TraceProblem};
use super::table::{Header, ReadRow};
use super::{Format, Kind};

/// Alibaba's table of 2023.
pub(super) const FORMAT: Format =
    Format { name: "Alibaba 2023", kind: Kind::Table { is: |header| header.has(&["gpu_milli", "num_gpu"]), header: None, rows } };

/// A pod is submitted at creation and runs from scheduling to deletion. Fractions of a GPU count as one.
fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    let name = header.need(&["name"])?;
    let gpus = header.need(&["num_gpu"])?;
    let created = header.need(&["creation_time"])?;
    let deleted = header.need(&["deletion_time"])?;
    let scheduled = header.need(&["scheduled_time"])?;
    Ok(Box::new(move |row, draft| {
        let submitted = draft.moment(created.name, row.need(created)?)?;
        let started = row.text(scheduled).map(|text| draft.moment(scheduled.name, text)).transpose()?;
        let ended = row.text(deleted).map(|text| draft.moment(deleted.name, text)).transpose()?;
        let name = row.need(name)?.to_owned();
        let job = TraceJob { name, submitted, gpus: row.count(gpus)?, workload: None, duration: None, owner: None };
        draft.add_run(job, time_between(started, ended)?)
    }))
}
