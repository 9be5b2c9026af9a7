//! CSV tables of measurements: rows with line numbers, and errors.

use std::io::Read;

use serde::Deserialize;
use thiserror::Error;

/// Error in a table of measurements.
#[derive(Debug, Error)]
pub enum TableError {
    /// Not a table of this form.
    #[error(transparent)]
    Form(#[from] csv::Error),
    /// An invalid row.
    #[error("line {line}: {problem}")]
    Row {
        /// Line number.
        line: u64,
        /// Description of the error.
        problem: String,
    },
    /// Required rows are missing.
    #[error("{0}")]
    Missing(&'static str),
}

/// Each row with its line number; blank lines count.
pub(crate) fn rows<Row: for<'row> Deserialize<'row>>(table: impl Read) -> Result<Vec<(u64, Row)>, csv::Error> {
    let mut reader = csv::Reader::from_reader(table);
    let headers = reader.headers()?.clone();
    let row = |record: csv::StringRecord| {
        let line = record.position().map_or(0, csv::Position::line);
        Ok((line, record.deserialize(Some(&headers))?))
    };
    reader.into_records().map(|record| record.and_then(row)).collect()
}
