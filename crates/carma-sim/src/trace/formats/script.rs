//! CARMA's traces: shell scripts with `sleep` between commands that submit a task.

use std::path::Path;

use carma_core::Seconds;

use super::super::draft::{self, Draft};
use super::super::error::shortened;
use super::super::input::Lines;
use super::super::{TraceJob, TraceProblem};
use super::{Format, Kind};
use crate::catalogue::WorkloadId;

/// Scripts recognised by their first line or their extension.
pub(super) const FORMAT: Format = Format {
    name: NAME,
    kind: Kind::Lines { is: |head| head.interpreter || head.has_extension("sh"), read: |_, lines, draft| read(lines, draft) },
};

/// Scripts recognised by their first command.
pub(super) const WITHOUT_MARK: Format =
    Format { name: NAME, kind: Kind::Lines { is: |head| is_command(head.first), read: |_, lines, draft| read(lines, draft) } };

const NAME: &str = "scripts of sleep and submit";

/// Commands that neither wait nor submit.
const IGNORED: [&str; 10] = ["cd", "echo", "set", "wait", "export", "source", ".", "conda", "date", "mkdir"];

/// Control flow of scripts: without running them, their submissions are not known.
const CONTROL: [&str; 12] = ["for", "while", "until", "if", "then", "else", "elif", "fi", "do", "done", "case", "function"];

/// Whether a line is a command of such a script.
fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    // A table's first line has commas and rarely a second word.
    !first.contains(',') && (words.next().is_some() || IGNORED.contains(&first) || first.starts_with("./"))
}

/// A job's submission time is the sum of the sleeps before it.
fn read(lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let mut now = Seconds::ZERO;
    while let Some(line) = lines.next()? {
        for command in commands(line) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            match words.as_slice() {
                ["sleep", spans @ ..] => now = now + sleep(spans)?,
                [first, ..] if IGNORED.contains(first) => {}
                [first, ..] if CONTROL.contains(first) => return Err(TraceProblem::NotACommand(shortened(&words.join(" ")))),
                [_, arguments @ ..] => {
                    let workload = workload(arguments, draft)?.ok_or_else(|| TraceProblem::NotACommand(shortened(&words.join(" "))))?;
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

/// The commands of a line as words: without comments, quotation marks and pipes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut piped = false;
    let mut before = ' ';
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') if before.is_whitespace() => break,
            (None, ' ' | '\t' | ';' | '|') => end_word(&mut commands, &mut word, piped),
            // Not in a redirection: `> log 2>&1`.
            (None, '&') if before != '>' => end_word(&mut commands, &mut word, piped),
            _ => word.push(character),
        }
        if quote.is_none() && (character == ';' || (character == '&' && before != '>')) {
            commands.push(Vec::new());
        }
        piped = quote.is_none() && character == '|' || piped && character != ';';
        before = character;
    }
    end_word(&mut commands, &mut word, piped);
    commands
}

fn end_word(commands: &mut [Vec<String>], word: &mut String, piped: bool) {
    let word = std::mem::take(word);
    if let Some(command) = commands.last_mut().filter(|_| !piped && !word.is_empty()) {
        command.push(word);
    }
}

/// Duration of a `sleep`, with the units of that command.
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
    let invalid = |_| TraceProblem::invalid("sleep", span, "a number of seconds from 0 to 9e12");
    Seconds::new(draft::seconds("sleep", number)?.get() * each).map_err(invalid)
}

/// The workload that a command submits: the name of its last `.rad` file, or else the last argument that names a workload.
fn workload(arguments: &[&str], draft: &Draft<'_>) -> Result<Option<WorkloadId>, TraceProblem> {
    // The value of `--task=NAME`.
    let values: Vec<&str> = arguments.iter().map(|argument| argument.rsplit_once('=').map_or(*argument, |(_, value)| value)).collect();
    let is_task = |value: &&&str| Path::new(value).extension().is_some_and(|extension| extension == "rad");
    if let Some(task) = values.iter().rev().find(is_task) {
        return draft.workload(&stem(task)).map(Some);
    }
    let find = |name: &str| draft.catalogue().find(name);
    let named = values.iter().rev().find_map(|value| find(value).or_else(|| find(&stem(value))));
    // If the last argument is similar to a workload, the command most likely submits it.
    match (named, values.last().map(|last| draft.workload(&stem(last)))) {
        (None, Some(Err(problem @ TraceProblem::UnknownWorkload { nearest: Some(_), .. }))) => Err(problem),
        _ => Ok(named),
    }
}

/// A file name without directory and extension.
pub(super) fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_like_in_a_shell() {
        assert_eq!(
            commands("./submit.sh a.rad > log 2>&1 & sleep 5"),
            [vec!["./submit.sh", "a.rad", ">", "log", "2>&1"], vec!["sleep", "5"]]
        );
        assert_eq!(commands("echo 'a; b & c # d' | tee log; sleep 1 # rest"), [vec!["echo", "a; b & c # d"], vec!["sleep", "1"]]);
        assert_eq!(commands("# nothing").concat(), Vec::<String>::new());
    }
}
