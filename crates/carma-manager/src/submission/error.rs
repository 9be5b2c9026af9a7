//! What is wrong with a submission, where, and what would be right.

use std::fmt;

use carma_sim::trace::TraceError;
use thiserror::Error;

/// A submission that cannot be accepted.
#[derive(Debug, Error)]
pub enum SubmissionError {
    /// Something said of a job.
    #[error("{place}{problem}")]
    Said {
        /// Where, and under which key.
        place: Place,
        /// What is wrong.
        problem: Problem,
    },
    /// A `.rad` file that is none.
    #[error(transparent)]
    TaskFile(#[from] TraceError),
}

/// Where something was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file, where it was not the command line.
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
    /// A value that cannot be.
    #[error("{value:?} is not {expected}")]
    Invalid {
        /// The value, cut short where it is long.
        value: String,
        /// What it should have been.
        expected: &'static str,
    },
    /// A key that there is not.
    #[error("there is no {name:?}{}", nearest.map(|name| format!("; is it {name:?}?")).unwrap_or_default())]
    UnknownKey {
        /// What was written.
        name: String,
        /// The key most like it.
        nearest: Option<&'static str>,
    },
    /// Anything else, in a sentence of its own.
    #[error("{0}")]
    Refused(String),
}

impl Problem {
    /// A value that cannot be.
    pub(super) fn invalid(value: &str, expected: &'static str) -> Self {
        const KEPT: usize = 60;
        let value = if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain(['…']).collect() };
        Self::Invalid { value, expected }
    }

    /// The problem where it stands.
    pub(super) fn at(self, place: Place) -> SubmissionError {
        SubmissionError::Said { place, problem: self }
    }
}
