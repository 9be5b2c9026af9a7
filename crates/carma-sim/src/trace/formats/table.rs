//! CSV tables: headers and rows.

use std::borrow::Cow;

use carma_core::Seconds;

use super::super::TraceProblem;
use super::super::draft::{self, Draft};
use super::super::input::Lines;

/// Adds the job of a row.
pub(super) type ReadRow = Box<dyn Fn(&Row<'_>, &mut Draft<'_>) -> Result<(), TraceProblem>>;

/// Reads all rows. Lines that start with `#` before the header are comments.
pub(super) fn read(
    header: Option<&str>,
    rows: fn(&Header) -> Result<ReadRow, TraceProblem>,
    lines: &mut Lines<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), TraceProblem> {
    let header = match header {
        Some(header) => Header::new(header)?,
        None => loop {
            match lines.next()? {
                Some(line) if line.starts_with('#') || line.trim().is_empty() => {}
                Some(line) => break Header::new(line)?,
                None => return Ok(()),
            }
        },
    };
    let read_row = rows(&header)?;
    while let Some(line) = lines.next()? {
        if !line.trim().is_empty() {
            let row = Row { fields: fields(line)? };
            // A cell too many is a comma inside a value, or a row of another table: its values are in the wrong columns.
            if row.fields.iter().skip(header.names.len()).any(|cell| !cell.trim().is_empty()) {
                return Err(TraceProblem::TooManyCells { cells: row.fields.len(), columns: header.names.len() });
            }
            read_row(&row, draft)?;
        }
    }
    Ok(())
}

/// Column names of a table.
pub(super) struct Header {
    names: Vec<String>,
}

impl Header {
    /// Parses the header line.
    pub(super) fn new(line: &str) -> Result<Self, TraceProblem> {
        Ok(Self { names: fields(line)?.iter().map(|name| name.trim().to_lowercase()).collect() })
    }

    /// Whether all of these columns exist.
    pub(super) fn has(&self, names: &[&'static str]) -> bool {
        names.iter().all(|name| self.find(&[name]).is_some())
    }

    /// The columns, in lower case.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The first of these columns that exists.
    pub(super) fn find(&self, names: &[&'static str]) -> Option<Column> {
        names.iter().find_map(|name| Some(Column { name, place: self.names.iter().position(|own| own == name)? }))
    }

    /// As [`Header::find`], but an error if there is none.
    pub(super) fn need(&self, names: &[&'static str]) -> Result<Column, TraceProblem> {
        self.find(names).ok_or_else(|| TraceProblem::MissingColumn(names.join(" or ")))
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    place: usize,
}

/// A row of a table.
pub(super) struct Row<'a> {
    fields: Vec<Cow<'a, str>>,
}

impl Row<'_> {
    /// The text in a column; none if it is empty.
    pub(super) fn text(&self, column: Column) -> Option<&str> {
        self.fields.get(column.place).map(|field| field.trim()).filter(|field| !field.is_empty())
    }

    /// As [`Row::text`], but an error if it is empty.
    pub(super) fn need(&self, column: Column) -> Result<&str, TraceProblem> {
        self.text(column).ok_or_else(|| TraceProblem::Missing(column.name.to_owned()))
    }

    /// The text in an optional column.
    pub(super) fn optional(&self, column: Option<Column>) -> Option<&str> {
        self.text(column?)
    }

    /// A duration in seconds; none if it is empty.
    pub(super) fn seconds(&self, column: Column) -> Result<Option<Seconds>, TraceProblem> {
        self.text(column).map(|text| draft::seconds(column.name, text)).transpose()
    }

    /// A whole number.
    pub(super) fn count(&self, column: Column) -> Result<u32, TraceProblem> {
        draft::count(column.name, self.need(column)?)
    }
}

/// The fields of a line. Quoted fields end on their line, so that an open quotation mark does not swallow the rest of a file. A CSV
/// reader over all lines would not ensure that.
fn fields(line: &str) -> Result<Vec<Cow<'_, str>>, TraceProblem> {
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    if line.matches('"').count() % 2 == 1 {
        return Err(TraceProblem::OpenQuote);
    }
    let mut record = csv::StringRecord::new();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    reader.read_record(&mut record).map_err(|error| TraceProblem::Table(error.to_string()))?;
    Ok(record.iter().map(|field| Cow::Owned(field.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_may_be_quoted() {
        assert_eq!(fields("a,,b").unwrap(), ["a", "", "b"]);
        assert_eq!(fields(r#"1,"a,b","say ""hi""","#).unwrap(), ["1", "a,b", "say \"hi\"", ""]);
        assert!(matches!(fields("1,\"a"), Err(TraceProblem::OpenQuote)));
    }
}
