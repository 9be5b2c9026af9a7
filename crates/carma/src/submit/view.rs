//! Previewed and accepted submissions, for people.

use std::io::Write;

use anyhow::Result;
use carma_core::JobId;
use carma_manager::api::Submission;
use carma_manager::request::JobRequest;
use carma_manager::submission::ValidSubmission;

use crate::manager::{command_text, numbers};
use carma_format::{duration, left, right, write_table};

/// Limit of rows; a few are enough to show an array of thousands.
const ROWS: usize = 20;

/// The accepted jobs, in one line.
pub(super) fn accepted(submission: &Submission, jobs: &[JobId]) -> String {
    let kind = if submission.parameters.is_empty() { "an array" } else { "a sweep" };
    match jobs {
        [job] => job.to_string(),
        _ => format!("jobs {}, {kind} of {}", numbers(jobs), jobs.len()),
    }
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
