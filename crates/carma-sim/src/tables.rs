//! Rows of CSV tables with the lines they stand on.

use std::io::Read;

use serde::Deserialize;

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
