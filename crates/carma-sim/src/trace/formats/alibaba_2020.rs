//! Alibaba's `pai_task_table` of 2020, often without its header. It has no submission time: the start of a task is used instead,
//! so the trace does not contain that cluster's waiting times.

use super::super::draft::time_between;
use super::super::{TraceJob, TraceProblem};
use super::table::{Column, Header, ReadRow, Row};
use super::{Format, Kind};

/// The table with its header.
pub(super) const FORMAT: Format =
    Format { name: "Alibaba 2020", kind: Kind::Table { is: |header| header.has(&["inst_num", "plan_gpu"]), header: None, rows } };

/// The table without its header.
pub(super) const WITHOUT_HEADER: Format =
    Format { name: "Alibaba 2020", kind: Kind::Table { is: |first| is_row(first.names()), header: Some(HEADER), rows } };

/// The table's columns.
const HEADER: &str = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type";

/// Whether the first line is a row of the table instead of a header.
fn is_row(fields: &[String]) -> bool {
    const NUMBERS: [usize; 6] = [2, 4, 5, 6, 7, 8];
    let numeric = |place: usize| fields[place].trim().is_empty() || fields[place].trim().parse::<f64>().is_ok();
    fields.len() == HEADER.split(',').count() && NUMBERS.into_iter().all(numeric) && !fields[2].trim().is_empty()
}

/// `plan_gpu` is the percentage of a GPU per instance; a fraction of a GPU counts as one.
fn rows(header: &Header) -> Result<ReadRow, TraceProblem> {
    let job = header.need(&["job_name"])?;
    let task = header.find(&["task_name"]);
    let instances = header.need(&["inst_num"])?;
    let start = header.need(&["start_time"])?;
    let end = header.need(&["end_time"])?;
    let planned = header.need(&["plan_gpu"])?;
    Ok(Box::new(move |row, draft| {
        let gpus = gpus(row, instances, planned)?;
        let started = row.text(start).map(|text| draft.moment(start.name, text)).transpose()?;
        let ended = row.text(end).map(|text| draft.moment(end.name, text)).transpose()?;
        let job = row.need(job)?;
        let name = row.optional(task).map_or_else(|| job.to_owned(), |task| format!("{job}/{task}"));
        let submitted = started.unwrap_or_default();
        let job = TraceJob { name, submitted, gpus, workload: None, duration: None, owner: None };
        draft.add_run(job, time_between(started, ended)?)
    }))
}

fn gpus(row: &Row<'_>, instances: Column, planned: Column) -> Result<u32, TraceProblem> {
    let Some(text) = row.text(planned) else { return Ok(0) };
    let percent = text.parse().ok().filter(|percent: &f64| (0.0..1.0e6).contains(percent));
    let percent = percent.ok_or_else(|| TraceProblem::invalid(planned.name, text, "percent of a GPU"))?;
    let each = (percent / 100.0).ceil() as u32;
    Ok(if each == 0 { 0 } else { each.saturating_mul(row.count(instances)?) })
}
