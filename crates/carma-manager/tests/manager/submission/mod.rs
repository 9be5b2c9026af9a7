//! Asking for jobs in every form.

mod expansion;
mod forms;
mod refusals;

use std::collections::BTreeMap;

use carma_manager::request::JobRequest;
use carma_manager::submission::{Caller, Key, OptionValue, ParsedSubmission, Place, Source, ValidSubmission};

fn caller() -> Caller {
    let environment = [("HOME", "/home/ada"), ("HF_TOKEN", "hf_1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    Caller {
        directory: "/project".into(),
        environment: BTreeMap::from(environment),
        umask: None,
        now: || "2027-01-30T12:00:00+02:00[+02:00]".parse().unwrap(),
    }
}

fn flags(given: &[(&str, &str)]) -> Vec<OptionValue> {
    let value = |&(name, value): &(&str, &str)| OptionValue {
        key: Key::find(name).unwrap(),
        value: value.to_owned(),
        place: Place { key: Some(format!("--{name}")), ..Place::default() },
    };
    given.iter().map(value).collect()
}

/// What a source and flags ask for, or what is wrong with it.
fn ask(source: Source<'_>, said: &[(&str, &str)]) -> Result<(Vec<ValidSubmission>, Vec<String>), String> {
    let (submissions, notes) = source.submissions(&flags(said), &caller()).map_err(|error| error.to_string())?;
    Ok((submissions.into_iter().map(ParsedSubmission::into_valid).collect(), notes))
}

fn text<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    Source::Text { name, text, arguments: Vec::new() }
}

fn command(words: &[&str]) -> Source<'static> {
    Source::Command(words.iter().map(|&word| word.to_owned()).collect())
}

fn requests(source: Source<'_>, said: &[(&str, &str)]) -> Vec<JobRequest> {
    ask(source, said).unwrap().0.iter().flat_map(ValidSubmission::requests).collect()
}

fn only(source: Source<'_>, said: &[(&str, &str)]) -> JobRequest {
    let mut all = requests(source, said);
    assert_eq!(all.len(), 1);
    all.remove(0)
}
