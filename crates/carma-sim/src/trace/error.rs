//! What is wrong with a trace, and where.

use std::fmt;
use std::io;

use thiserror::Error;

/// A trace that cannot be used: which file, which line, and why.
#[derive(Debug, Error)]
#[error("{file}{}: {problem}", Place(*.line))]
pub struct TraceError {
    /// The file.
    pub file: String,
    /// The line, counted from 1, where there is one.
    pub line: Option<u64>,
    /// What is wrong.
    pub problem: TraceProblem,
}

struct Place(Option<u64>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ", line {line}"))
    }
}

/// What is wrong.
#[derive(Debug, Error)]
pub enum TraceProblem {
    /// The file is not there, or ends too early.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// A file that is too large, or a small one that unpacks to something too large.
    #[error("has more than {0} bytes once unpacked, which is the limit")]
    TooLarge(u64),
    /// A line that is too long to be one of a trace.
    #[error("the line has more than {0} bytes, which is the limit")]
    LineTooLong(usize),
    /// Too many jobs.
    #[error("there are more than {0} jobs, which is the limit")]
    TooManyJobs(usize),
    /// Bytes that are no text.
    #[error("not text in UTF-8")]
    NotText,
    /// None of the formats.
    #[error("not a trace: known are CSV tables, job logs of Philly (JSON), scripts of sleep and submit, and .rad task files")]
    UnknownFormat,
    /// A table without a column that is needed.
    #[error("there is no column {0}")]
    MissingColumn(String),
    /// A value that is needed.
    #[error("{0} is missing")]
    Missing(String),
    /// A value that cannot be.
    #[error("{what} {value:?} is not {expected}")]
    Invalid {
        /// Whose value.
        what: String,
        /// The value, cut short where it is long.
        value: String,
        /// What it should have been.
        expected: &'static str,
    },
    /// A job that runs something the catalogue has not.
    #[error("{name:?} is no workload of the catalogue{}", Suggestion(.nearest.as_deref()))]
    UnknownWorkload {
        /// What was named.
        name: String,
        /// The name most like it.
        nearest: Option<String>,
    },
    /// A job that ended before it started.
    #[error("the job ends before it starts")]
    EndsBeforeStart,
    /// A quotation mark without its pair.
    #[error("a quotation mark is not closed on its line")]
    OpenQuote,
    /// Not JSON, or not of the expected form.
    #[error("{0}")]
    Json(String),
    /// A script that does more than to sleep and to submit.
    #[error("{0:?} is not understood: a script is read for `sleep` and for commands that name a workload or a .rad file")]
    NotACommand(String),
    /// No job at all.
    #[error("there is no job in it{}", LeftOut(*.0))]
    Empty(u64),
}

impl TraceProblem {
    /// A value that cannot be.
    pub(super) fn invalid(what: &str, value: &str, expected: &'static str) -> Self {
        Self::Invalid { what: what.to_owned(), value: shortened(value), expected }
    }

    /// Where it stands.
    pub(super) fn at(self, file: &str, line: impl Into<Option<u64>>) -> TraceError {
        TraceError { file: file.to_owned(), line: line.into(), problem: self }
    }
}

/// Errors of the limited reader carry their problem inside an I/O error, since that is what readers may return.
impl From<io::Error> for TraceProblem {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(problem) => problem,
            Err(error) => Self::Unreadable(error),
        }
    }
}

/// A line can be long; what is wrong with it need not be.
pub(super) fn shortened(value: &str) -> String {
    const KEPT: usize = 60;
    if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain(['…']).collect() }
}

struct Suggestion<'a>(Option<&'a str>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, "; is it {name:?}?"))
    }
}

struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, " that ran on a GPU (left out: {})", self.0) }
    }
}
