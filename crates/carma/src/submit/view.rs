//! What would be submitted, and what was, for people.

use std::io::Write;

use anyhow::Result;
use carma_core::JobId;
use carma_manager::api::Submit;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::submission::Submission;

use crate::manager::numbers;
use crate::text::{printable, shortened};
use crate::units::duration;

/// Rows of a table; what an array of thousands has in common is seen in a few.
const ROWS: usize = 20;

/// What was accepted, in a line.
pub(super) fn accepted(submit: &Submit, jobs: &[JobId]) -> String {
    let kind = if submit.parameters.is_empty() { "an array" } else { "a sweep" };
    match jobs {
        [job] => job.to_string(),
        _ => format!("jobs {}, {kind} of {}", numbers(jobs), jobs.len()),
    }
}

/// The first requests as a table.
pub(super) fn table(submissions: &[Submission], output: &mut impl Write) -> Result<()> {
    let jobs: usize = submissions.iter().map(Submission::jobs).sum();
    writeln!(output, "{:<12} {:>5} {:>4} {:>9} {:>12}  COMMAND", "NAME", "INDEX", "GPUS", "MEMORY", "TIME LIMIT")?;
    for request in submissions.iter().flat_map(Submission::requests).take(ROWS) {
        let JobRequest { name, resources, array, command, .. } = request;
        let unset = || "-".to_owned();
        let row = format!(
            "{:<12} {:>5} {:>4} {:>9} {:>12}  {}",
            shortened(&name.unwrap_or_else(unset), 12),
            array.map_or_else(unset, |label| label.index.to_string()),
            resources.gpus,
            resources.memory.map_or_else(unset, |memory| memory.to_string()),
            resources.time_limit.map_or_else(unset, |limit| duration(limit.get())),
            words(&command)
        );
        writeln!(output, "{}", shortened(&row, 80))?;
    }
    let more = jobs.saturating_sub(ROWS);
    if more > 0 {
        writeln!(output, "and {more} more")?;
    }
    Ok(())
}

/// A command as words, with nothing in it that could steer a terminal.
pub(crate) fn words(command: &JobCommand) -> String {
    match command {
        JobCommand::Program(words) => printable(&words.join(" ")),
        JobCommand::Script { text, .. } => format!("a script of {} lines", text.lines().count()),
    }
}
