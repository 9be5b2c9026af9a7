//! Scripts: the options in their `#CARMA` and `#SBATCH` lines.

use super::error::{Place, Problem, SubmissionError};
use super::form::{ParsedJob, ParsedSource};
use super::key::{KEYS, Key, OptionValue};
use super::{shell_words, slurm};
use crate::request::JobCommand;

/// Reads the lines before the first command. The script itself stays as it is.
pub(super) fn read(name: &str, text: &str, arguments: Vec<String>) -> Result<ParsedSource, SubmissionError> {
    let at = |line: Option<usize>| Place { file: Some(name.to_owned()), line, key: None };
    if !text.starts_with("#!") {
        let why = "a script needs its interpreter in the first line, such as #!/bin/bash";
        return Err(Problem::Refused(why.to_owned()).at(at(Some(1))));
    }
    let (mut own, mut of_slurm, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut begun = false;
    for (number, line) in text.lines().enumerate() {
        let place = at(Some(number + 1));
        let fail = |problem: Problem| problem.at(place.clone());
        if let Some(rest) = directive(line, "#CARMA") {
            if begun {
                return Err(fail(Problem::Refused("put #CARMA lines before the first command".to_owned())));
            }
            for (option, value) in options(&shell_words::split(rest).map_err(fail)?, takes_value).map_err(fail)? {
                let key = named(&option).map_err(fail)?;
                let place = Place { key: Some(option), ..place.clone() };
                let value = value_of(key, value).map_err(|problem| problem.at(place.clone()))?;
                own.push(OptionValue { key, value, place });
            }
        } else if let Some(rest) = directive(line, "#SBATCH") {
            if begun {
                notes.push(format!("{place}#SBATCH after the first command is ignored"));
                continue;
            }
            for (option, value) in options(&shell_words::split(rest).map_err(fail)?, slurm::takes_value).map_err(fail)? {
                let translated = slurm::translate(&option, value.as_deref().unwrap_or_default());
                notes.extend(translated.note.map(|note| format!("{place}{option}: {note}")));
                let place = Place { key: Some(option), ..place.clone() };
                let values = translated
                    .options
                    .into_iter()
                    .map(|(key, value)| Ok(OptionValue { key: Key::find(key)?, value, place: place.clone() }));
                of_slurm.extend(values.collect::<Result<Vec<_>, _>>().map_err(|problem: Problem| problem.at(place.clone()))?);
            }
        } else {
            begun |= !line.trim().is_empty() && !line.starts_with('#');
        }
    }
    let command = Some(JobCommand::Script { text: text.to_owned(), arguments });
    // In a script for both, our own lines win.
    Ok(ParsedSource { jobs: vec![ParsedJob { command, place: at(None), layers: vec![of_slurm, own] }], notes })
}

/// Whether a script has `#SBATCH` lines before its first command.
pub(crate) fn is_for_slurm(text: &str) -> bool {
    let head = text.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#'));
    head.into_iter().any(|line| directive(line, "#SBATCH").is_some())
}

fn directive<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.strip_prefix(mark).filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// The key of a flag, by name or letter.
fn named(option: &str) -> Result<&'static Key, Problem> {
    match option.strip_prefix("--") {
        Some(name) => Key::find(name),
        None => KEYS
            .iter()
            .find(|key| key.short.is_some_and(|short| option.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))))
            .ok_or_else(|| Problem::UnknownKey { name: option.to_owned(), nearest: None }),
    }
}

fn takes_value(option: &str) -> Option<bool> {
    named(option).ok().map(|key| key.value.is_some())
}

fn value_of(key: &Key, value: Option<String>) -> Result<String, Problem> {
    match (key.value, value) {
        (Some(_), Some(value)) => Ok(value),
        (None, None) => Ok(String::new()),
        (Some(wanted), None) => Err(Problem::Refused(format!("{wanted} is missing"))),
        (None, Some(value)) => Err(Problem::Refused(format!("takes no value, but has {value:?}"))),
    }
}

/// Flags and their values: `--flag value`, `--flag=value`, `-f value`, `-fvalue`. After an unknown flag, a word without a dash is its value.
fn options(words: &[String], takes_value: impl Fn(&str) -> Option<bool>) -> Result<Vec<(String, Option<String>)>, Problem> {
    let mut found = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let (name, attached) = match word.strip_prefix("--") {
            Some(_) => word.split_once('=').map_or((word.clone(), None), |(name, value)| (name.to_owned(), Some(value.to_owned()))),
            None => match word.strip_prefix('-').and_then(|rest| rest.chars().next()) {
                Some(letter) => {
                    let rest = &word[1 + letter.len_utf8()..];
                    (format!("-{letter}"), (!rest.is_empty()).then(|| rest.to_owned()))
                }
                None => return Err(Problem::invalid(word, "an option: options begin with a dash")),
            },
        };
        let value = match takes_value(&name) {
            _ if attached.is_some() => attached,
            Some(true) => words.next().cloned(),
            Some(false) => None,
            None => words.next_if(|word| !word.starts_with('-')).cloned(),
        };
        found.push((name, value));
    }
    Ok(found)
}
