//! CARMA's traces are shell scripts: `sleep` between commands that submit a task.

use std::path::Path;

use carma_core::Seconds;

use super::super::draft::{self, Draft};
use super::super::error::shortened;
use super::super::input::Lines;
use super::super::{TraceJob, TraceProblem};
use crate::catalogue::WorkloadId;

/// Commands that neither wait nor submit.
const IGNORED: [&str; 10] = ["cd", "echo", "set", "wait", "export", "source", ".", "conda", "date", "mkdir"];

/// Whether a line is one of such a script, where nothing else tells.
pub(in super::super) fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    // A table's first line has commas and seldom a second word.
    !first.contains(',') && (words.next().is_some() || IGNORED.contains(&first) || first.starts_with("./"))
}

/// Jobs are submitted at the sum of the sleeps before them.
pub(in super::super) fn read(lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let mut now = Seconds::ZERO;
    while let Some(line) = lines.next()? {
        let line = if line.starts_with('#') { "" } else { line.split(" #").next().unwrap_or(line) };
        for command in line.split([';', '&']).map(str::trim).filter(|command| !command.is_empty()) {
            let words: Vec<&str> = command.split_whitespace().collect();
            match words.as_slice() {
                ["sleep", spans @ ..] => now = now + sleep(spans)?,
                [first, ..] if IGNORED.contains(first) => {}
                [_, arguments @ ..] => {
                    let workload = workload(command, arguments, draft)?;
                    let gpus = draft.catalogue().get(workload).gpus();
                    let name = draft.next_name();
                    draft.add(TraceJob { name, submitted: now, gpus, workload: Some(workload), duration: None, owner: None })?;
                }
                [] => {}
            }
        }
    }
    Ok(())
}

/// The span of a `sleep`, with the units that command knows.
fn sleep(spans: &[&str]) -> Result<Seconds, TraceProblem> {
    let &[span] = spans else { return Err(TraceProblem::NotACommand(shortened(&format!("sleep {}", spans.join(" "))))) };
    let (number, unit) = match span.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, &span[number.len()..]),
        None => (span, "s"),
    };
    let each = match unit {
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => 1.0,
    };
    let invalid = |_| TraceProblem::invalid("sleep", span, "a number of seconds of 0 or more");
    Seconds::new(draft::seconds("sleep", number)?.get() * each).map_err(invalid)
}

/// The workload a command submits: what its last `.rad` file is called after, or else the last argument that names one.
fn workload(command: &str, arguments: &[&str], draft: &Draft<'_>) -> Result<WorkloadId, TraceProblem> {
    let plain = |argument: &&str| {
        let value = argument.rsplit_once('=').map_or(*argument, |(_, value)| value);
        value.trim_matches(['"', '\'']).to_owned()
    };
    let values: Vec<String> = arguments.iter().map(plain).collect();
    let is_task = |value: &&String| Path::new(value).extension().is_some_and(|extension| extension == "rad");
    if let Some(task) = values.iter().rev().find(is_task) {
        return draft.workload(&stem(task));
    }
    let named = values.iter().rev().find_map(|value| draft.catalogue().find(value).or_else(|| draft.catalogue().find(&stem(value))));
    // A submit command with one argument that is no workload is most likely a misspelt one.
    named.ok_or_else(|| match values.last().map(|last| draft.workload(&stem(last))) {
        Some(Err(problem @ TraceProblem::UnknownWorkload { nearest: Some(_), .. })) => problem,
        _ => TraceProblem::NotACommand(shortened(command)),
    })
}

/// A file's name without folder and extension.
pub(super) fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
