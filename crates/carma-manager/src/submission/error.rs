//! Errors of submissions: what is wrong, where, and what would be right.

use std::fmt;

use carma_sim::trace::TraceError;
use thiserror::Error;

/// A submission that cannot be accepted.
#[derive(Debug, Error)]
pub enum SubmissionError {
    /// An option is wrong.
    #[error("{place}{problem}")]
    Option {
        /// Where it is given.
        place: Place,
        /// What is wrong.
        problem: Problem,
    },
    /// A file is not in the `.rad` format.
    #[error(transparent)]
    TaskFile(#[from] TraceError),
}

/// Where an option is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file; unset for the command line.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The key, as it is written there: `--mem`, or `mem` in a job file.
    pub key: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key } = self;
        let parts = [file.clone(), line.map(|line| format!("line {line}"))];
        let place = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        [(!place.is_empty()).then_some(place), key.clone()].into_iter().flatten().try_for_each(|part| write!(f, "{part}: "))
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// A value is invalid.
    #[error("{value:?} is not {expected}")]
    Invalid {
        /// The value, cut short where it is long.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A key is unknown.
    #[error("unknown option {name:?}{}", nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default())]
    UnknownKey {
        /// What was written.
        name: String,
        /// The key most like it.
        nearest: Option<&'static str>,
    },
    /// Anything else, as a sentence.
    #[error("{0}")]
    Refused(String),
}

impl Problem {
    /// An invalid value.
    pub(super) fn invalid(value: &str, expected: &'static str) -> Self {
        const KEPT: usize = 60;
        let value =
            if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain("...".chars()).collect() };
        Self::Invalid { value, expected }
    }

    /// The problem at its place.
    pub(super) fn at(self, place: Place) -> SubmissionError {
        SubmissionError::Option { place, problem: self }
    }
}
