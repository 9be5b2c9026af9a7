//! `.rad` task files.

use carma_sim::trace::RadTask;

use super::error::{Place, Problem, SubmissionError};
use super::form::{ParsedJob, ParsedSource};
use super::key::{Key, OptionValue};
use super::shell_words;
use crate::request::JobCommand;

/// Reads a task. It requests its measured memory, not the recorded estimates. No shell reads its command.
pub(super) fn read(name: &str, text: &str) -> Result<ParsedSource, SubmissionError> {
    let task = RadTask::parse(name, text)?;
    let at = |line| Place { file: Some(name.to_owned()), line: Some(line), key: None };
    let command = shell_words::split_command(&task.command).map_err(|problem| problem.at(at(3)))?;
    let facts = [
        ("conda", 2, Some(task.environment)),
        ("model", 4, Some(task.summary)),
        ("batch", 6, Some(task.batch.to_string())),
        ("gpus", 8, Some(task.gpus.to_string())),
        ("mem", 9, task.needs.measured.map(|need| need.0.to_string())),
    ];
    let given = facts.into_iter().filter_map(|(key, line, value)| Some((key, line, value?)));
    let options = given.map(|(key, line, value)| {
        Ok(OptionValue { key: Key::find(key).map_err(|problem: Problem| problem.at(at(line)))?, value, place: at(line) })
    });
    let layer = options.collect::<Result<Vec<_>, SubmissionError>>()?;
    Ok(ParsedSource {
        jobs: vec![ParsedJob { command: Some(JobCommand::Program(command)), place: at(3), layers: vec![layer] }],
        notes: Vec::new(),
    })
}
