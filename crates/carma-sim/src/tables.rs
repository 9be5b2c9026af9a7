//! CSV tables of measurements: rows with the lines they stand on, and what can be wrong with them.

use std::io::Read;

use serde::Deserialize;
use thiserror::Error;

/// What is wrong with a table of measurements.
#[derive(Debug, Error)]
pub enum TableError {
    /// Not a table of this form.
    #[error(transparent)]
    Form(#[from] csv::Error),
    /// A row that makes no sense.
    #[error("line {line}: {problem}")]
    Row {
        /// Which.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The rows that matter are not there.
    #[error("{0}")]
    Missing(&'static str),
}

/// Each row with its line, blank lines counted.
pub(crate) fn rows<Row: for<'row> Deserialize<'row>>(table: impl Read) -> Result<Vec<(u64, Row)>, csv::Error> {
    let mut reader = csv::Reader::from_reader(table);
    let headers = reader.headers()?.clone();
    let row = |record: csv::StringRecord| {
        let line = record.position().map_or(0, csv::Position::line);
        Ok((line, record.deserialize(Some(&headers))?))
    };
    reader.into_records().map(|record| record.and_then(row)).collect()
}
