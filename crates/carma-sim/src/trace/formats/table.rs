//! CSV tables: which one it is by its header, and its rows.

use std::borrow::Cow;

use carma_core::Seconds;

use super::super::TraceProblem;
use super::super::draft::{self, Draft};
use super::super::input::Lines;
use super::{alibaba_2020, alibaba_2023, helios, philly_table, submissions};

/// What makes a job of a row.
pub(super) type ReadRow = Box<dyn Fn(&Row<'_>, &mut Draft<'_>) -> Result<(), TraceProblem>>;

/// The tables that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Table {
    Submissions,
    Philly,
    Helios,
    Alibaba2020,
    Alibaba2020WithoutHeader,
    Alibaba2023,
}

impl Table {
    /// Which table has this for its first line.
    pub(in super::super) fn recognise(first: &str) -> Result<Option<Self>, TraceProblem> {
        let header = Header::new(first)?;
        let has = |names: &[&'static str]| names.iter().all(|name| header.find(&[name]).is_some());
        let known = [
            (Self::Alibaba2023, has(&["gpu_milli", "num_gpu"])),
            (Self::Alibaba2020, has(&["inst_num", "plan_gpu"])),
            (Self::Helios, has(&["gpu_num", "submit_time"])),
            (Self::Philly, has(&["timestamp", "num_gpus"])),
            (Self::Submissions, header.find(submissions::SUBMITTED).is_some() || header.find(submissions::WORKLOAD).is_some()),
            (Self::Alibaba2020WithoutHeader, alibaba_2020::is_row(&header.names)),
        ];
        Ok(known.into_iter().find(|(_, is_it)| *is_it).map(|(table, _)| table))
    }

    /// Reads all rows. Lines that begin with `#` before the header are comments.
    pub(in super::super) fn read(self, lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
        let read_row = if self == Self::Alibaba2020WithoutHeader {
            alibaba_2020::rows(&Header::new(alibaba_2020::HEADER)?)?
        } else {
            let header = loop {
                match lines.next()? {
                    Some(line) if line.starts_with('#') || line.trim().is_empty() => {}
                    Some(line) => break Header::new(line)?,
                    None => return Ok(()),
                }
            };
            match self {
                Self::Submissions => submissions::rows(&header),
                Self::Philly => philly_table::rows(&header),
                Self::Helios => helios::rows(&header),
                Self::Alibaba2020 | Self::Alibaba2020WithoutHeader => alibaba_2020::rows(&header),
                Self::Alibaba2023 => alibaba_2023::rows(&header),
            }?
        };
        while let Some(line) = lines.next()? {
            if !line.trim().is_empty() {
                read_row(&Row { fields: fields(line)? }, draft)?;
            }
        }
        Ok(())
    }
}

/// The names of a table's columns.
pub(super) struct Header {
    names: Vec<String>,
}

impl Header {
    fn new(line: &str) -> Result<Self, TraceProblem> {
        Ok(Self { names: fields(line)?.iter().map(|name| name.trim().to_lowercase()).collect() })
    }

    /// The first of these names that is a column.
    pub(super) fn find(&self, names: &[&'static str]) -> Option<Column> {
        names.iter().find_map(|name| Some(Column { name, place: self.names.iter().position(|own| own == name)? }))
    }

    /// As [`Header::find`], where one of them must be there.
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

    /// As [`Row::text`], where it must be there.
    pub(super) fn need(&self, column: Column) -> Result<&str, TraceProblem> {
        self.text(column).ok_or_else(|| TraceProblem::Missing(column.name.to_owned()))
    }

    /// The text in a column that the table may not have.
    pub(super) fn optional(&self, column: Option<Column>) -> Option<&str> {
        self.text(column?)
    }

    /// A span in seconds; none if it is empty.
    pub(super) fn seconds(&self, column: Column) -> Result<Option<Seconds>, TraceProblem> {
        self.text(column).map(|text| draft::seconds(column.name, text)).transpose()
    }

    /// A whole number.
    pub(super) fn count(&self, column: Column) -> Result<u32, TraceProblem> {
        draft::count(column.name, self.need(column)?)
    }
}

/// The fields of a line. A field in quotation marks may hold commas, and a mark written twice; it ends on its line, so that an
/// open quotation mark cannot swallow the rest of a file.
fn fields(line: &str) -> Result<Vec<Cow<'_, str>>, TraceProblem> {
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => push(&mut fields, '"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => push(&mut fields, other),
        }
    }
    if quoted { Err(TraceProblem::OpenQuote) } else { Ok(fields.into_iter().map(Cow::Owned).collect()) }
}

fn push(fields: &mut [String], character: char) {
    if let Some(field) = fields.last_mut() {
        field.push(character);
    }
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
