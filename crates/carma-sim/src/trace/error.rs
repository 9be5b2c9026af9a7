//! Errors of traces, with their location.

use std::fmt;
use std::io;

use thiserror::Error;

/// A trace that cannot be used: the file, the line, and the reason.
#[derive(Debug, Error)]
#[error("{file}{}: {problem}", Place(*.line))]
pub struct TraceError {
    /// The file.
    pub file: String,
    /// The line, counted from 1, if known.
    pub line: Option<u64>,
    /// The problem.
    pub problem: TraceProblem,
}

struct Place(Option<u64>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ", line {line}"))
    }
}

/// A problem with a trace.
#[derive(Debug, Error)]
pub enum TraceProblem {
    /// The file is missing or ends too early.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// The file is too large, packed or unpacked.
    #[error("has more than {0} bytes once unpacked, which is the limit")]
    TooLarge(u64),
    /// A line is too long.
    #[error("the line has more than {0} bytes, which is the limit")]
    LineTooLong(usize),
    /// Too many jobs.
    #[error("there are more than {0} jobs, which is the limit")]
    TooManyJobs(usize),
    /// The bytes are not text.
    #[error("not text in UTF-8")]
    NotText,
    /// No known format.
    #[error("not a trace: known are {0}")]
    UnknownFormat(String),
    /// A line that is not CSV.
    #[error("{0}")]
    Table(String),
    /// More values in a row than the table has columns.
    #[error("the row has {cells} cells, and the table has {columns} columns: quote values with commas")]
    TooManyCells {
        /// Cells of the row.
        cells: usize,
        /// Columns of the header.
        columns: usize,
    },
    /// A table of a manager's jobs.
    #[error(
        "is a table of `carma export`, which does not say how jobs behave alone: `carma what-if` simulates the jobs of a manager under other \
         policies"
    )]
    OfExport,
    /// A required column is missing.
    #[error("column {0} is missing")]
    MissingColumn(String),
    /// A required value is missing.
    #[error("{0} is missing")]
    Missing(String),
    /// An invalid value.
    #[error("{what} {value:?} is not {expected}")]
    Invalid {
        /// Name of the value.
        what: String,
        /// The value, shortened if long.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The catalogue lacks a job's workload.
    #[error("{name:?} is not a workload of the catalogue{}", Suggestion(.nearest.as_deref()))]
    UnknownWorkload {
        /// The name in the trace.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// A job that ended before it started.
    #[error("the job ends before it starts")]
    EndsBeforeStart,
    /// A quotation mark is not closed.
    #[error("a quotation mark is not closed on its line")]
    OpenQuote,
    /// Not JSON, or not of the expected form.
    #[error("{0}")]
    Json(String),
    /// The script does more than sleep and submit.
    #[error("{0:?} is not supported: a script may contain `sleep` and commands with a workload or a .rad file")]
    NotACommand(String),
    /// No jobs.
    #[error("it contains no job{}", LeftOut(*.0))]
    Empty(u64),
}

impl TraceProblem {
    /// An invalid value.
    pub(super) fn invalid(what: &str, value: &str, expected: &'static str) -> Self {
        Self::Invalid { what: what.to_owned(), value: shortened(value), expected }
    }

    /// Adds the location.
    pub(super) fn at(self, file: &str, line: impl Into<Option<u64>>) -> TraceError {
        TraceError { file: file.to_owned(), line: line.into(), problem: self }
    }
}

/// Errors of the limited reader carry their problem inside an I/O error, since readers must return one.
impl From<io::Error> for TraceProblem {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(problem) => problem,
            Err(error) => Self::Unreadable(error),
        }
    }
}

/// Shortens a long line for an error message.
pub(super) fn shortened(value: &str) -> String {
    const KEPT: usize = 60;
    if value.chars().nth(KEPT).is_none() { value.to_owned() } else { value.chars().take(KEPT).chain("...".chars()).collect() }
}

struct Suggestion<'a>(Option<&'a str>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, "; did you mean {name:?}?"))
    }
}

struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, " that ran on a GPU (left out: {})", self.0) }
    }
}
