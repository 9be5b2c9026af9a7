//! Previewed and accepted submissions, for people.

use std::io::Write;

use anyhow::Result;
use carma_core::{ArrayId, JobId, JobLabel};
use carma_manager::api::Submission;
use carma_manager::request::JobRequest;
use carma_manager::submission::ValidSubmission;

use crate::manager::{command_text, names};
use carma_format::{duration, left, right, write_table};

/// Limit of rows; a few are enough to show an array of thousands.
const ROWS: usize = 20;

/// The accepted jobs, in one line.
pub(super) fn accepted(submission: &Submission, jobs: &[JobId]) -> String {
    let kind = if submission.parameters.is_empty() { "array" } else { "sweep" };
    match labels(submission, jobs).as_slice() {
        [job] => job.to_string(),
        labels => {
            let array = labels.first().map_or(0, |first| first.job.0);
            format!("{kind} {array} of {} jobs: {}", jobs.len(), names(labels))
        }
    }
}

/// The names of accepted jobs.
pub(super) fn labels(submission: &Submission, jobs: &[JobId]) -> Vec<JobLabel> {
    let array = jobs.first().filter(|_| submission.array.is_some() || !submission.parameters.is_empty()).map(|first| ArrayId(first.0));
    let index = |place: usize| match &submission.array {
        Some(indices) => indices.get(place).copied(),
        None => u32::try_from(place).ok(),
    };
    jobs.iter().enumerate().map(|(place, job)| JobLabel { job: *job, member: array.zip(index(place)) }).collect()
}

/// The first requests as a table.
pub(super) fn table(submissions: &[ValidSubmission], output: &mut impl Write) -> Result<()> {
    let jobs: usize = submissions.iter().map(ValidSubmission::jobs).sum();
    let row = |JobRequest { name, resources, array, command, .. }: JobRequest| {
        let unset = || "-".to_owned();
        [
            name.unwrap_or_else(unset),
            array.map_or_else(unset, |element| element.index.to_string()),
            resources.gpus.to_string(),
            resources.memory.map_or_else(unset, |memory| memory.to_string()),
            resources.time_limit.map_or_else(unset, |limit| duration(limit.get())),
            command_text(&command),
        ]
    };
    let rows: Vec<_> = submissions.iter().flat_map(ValidSubmission::requests).take(ROWS).map(row).collect();
    let columns =
        [left("NAME", 12), right("INDEX", 6), right("GPUS", 4), right("MEMORY", 9), right("TIME LIMIT", 12), left("COMMAND", 200)];
    write_table(columns, &rows, output)?;
    let more = jobs.saturating_sub(ROWS);
    if more > 0 {
        writeln!(output, "and {more} more")?;
    }
    Ok(())
}
