//! Identifies tables by their header, and defines errors of tables.

use std::io::Read;

use thiserror::Error;

use super::observation::Observation;
use super::tables::{self, Row};

/// Error in a table of measurements.
#[derive(Debug, Error)]
pub enum DataError {
    /// Not a CSV table.
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
    /// An unknown header.
    #[error("no table of memory measurements begins with the columns {0:?}; known: {known}", known = tables::KNOWN)]
    Header(String),
}

/// Reads any of the published tables.
pub fn read(table: impl Read) -> Result<Vec<Observation>, DataError> {
    let mut reader = csv::Reader::from_reader(table);
    let headers = reader.headers()?.clone();
    let interpret = tables::of_header(&headers).ok_or_else(|| DataError::Header(headers.iter().take(8).collect::<Vec<_>>().join(",")))?;
    let mut observations = Vec::new();
    for record in reader.into_records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let observation = interpret(&Row { headers: &headers, record: &record }).map_err(|problem| DataError::Row { line, problem })?;
        observations.push(observation);
    }
    Ok(observations)
}
