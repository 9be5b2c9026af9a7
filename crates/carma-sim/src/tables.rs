//! Rows of CSV tables with the lines they stand on.

use std::io::Read;

use serde::Deserialize;

/// Each row with its line, blank lines counted.
pub(crate) fn rows<Row: for<'row> Deserialize<'row>>(table: impl Read) -> impl Iterator<Item = Result<(u64, Row), csv::Error>> {
    let mut reader = csv::Reader::from_reader(table);
    let headers = reader.headers().cloned();
    let mut failed = headers.as_ref().err().is_some();
    let mut record = csv::StringRecord::new();
    std::iter::from_fn(move || {
        if std::mem::take(&mut failed) {
            return reader.headers().err().map(Err);
        }
        match reader.read_record(&mut record) {
            Ok(false) => None,
            Ok(true) => {
                let line = record.position().map_or(0, csv::Position::line);
                let headers = headers.as_ref().ok()?;
                Some(record.deserialize(Some(headers)).map(|row| (line, row)))
            }
            Err(error) => Some(Err(error)),
        }
    })
}
