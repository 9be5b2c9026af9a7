//! Asking for jobs in every form.

mod expansion;
mod forms;
mod refusals;

use std::collections::BTreeMap;

use carma_manager::request::JobRequest;
use carma_manager::submission::{Caller, Key, Place, Saying, Source, Submission};

fn caller() -> Caller {
    let environment = [("HOME", "/home/ada"), ("HF_TOKEN", "hf_1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    Caller {
        directory: "/project".into(),
        environment: BTreeMap::from(environment),
        now: "2027-01-30T12:00:00+02:00[+02:00]".parse().unwrap(),
    }
}

fn flags(said: &[(&str, &str)]) -> Vec<Saying> {
    let saying = |&(name, value): &(&str, &str)| Saying {
        key: Key::find(name).unwrap(),
        value: value.to_owned(),
        place: Place { key: Some(format!("--{name}")), ..Place::default() },
    };
    said.iter().map(saying).collect()
}

/// What a source and flags ask for, or what is wrong with it.
fn ask(source: Source<'_>, said: &[(&str, &str)]) -> Result<(Vec<Submission>, Vec<String>), String> {
    source.submissions(&flags(said), &caller()).map_err(|error| error.to_string())
}

fn text<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    Source::Text { name, text, arguments: Vec::new() }
}

fn command(words: &[&str]) -> Source<'static> {
    Source::Command(words.iter().map(|&word| word.to_owned()).collect())
}

fn requests(source: Source<'_>, said: &[(&str, &str)]) -> Vec<JobRequest> {
    ask(source, said).unwrap().0.iter().flat_map(Submission::requests).collect()
}

fn only(source: Source<'_>, said: &[(&str, &str)]) -> JobRequest {
    let mut all = requests(source, said);
    assert_eq!(all.len(), 1);
    all.remove(0)
}
