//! Trace formats: one file each, and a table of all.

mod alibaba_2020;
mod alibaba_2023;
mod helios;
mod philly_log;
mod philly_table;
mod script;
mod submissions;
mod table;
mod task_file;

use std::io::BufRead;
use std::path::Path;

use super::TraceProblem;
use super::draft::Draft;
use super::input::Lines;
use table::{Header, ReadRow};
pub use task_file::{RadNeeds, RadTask};

/// A trace format.
pub(super) struct Format {
    /// Its name in messages.
    name: &'static str,
    kind: Kind,
}

/// Reads a JSON array; errors have a line number.
type ReadJson = fn(Box<dyn BufRead + '_>, &mut Draft<'_>) -> Result<(), (Option<u64>, TraceProblem)>;

/// How to recognise and read a format.
enum Kind {
    /// A JSON array.
    Json(ReadJson),
    /// Lines of text; `read` gets the file name.
    Lines { is: fn(&Head<'_>) -> bool, read: fn(&str, &mut Lines<'_>, &mut Draft<'_>) -> Result<(), TraceProblem> },
    /// A CSV table. A table without a header gets `header`.
    Table { is: fn(&Header) -> bool, header: Option<&'static str>, rows: fn(&Header) -> Result<ReadRow, TraceProblem> },
}

/// All formats; the first that recognises a file reads it.
const FORMATS: [Format; 10] = [
    philly_log::FORMAT,
    task_file::FORMAT,
    script::FORMAT,
    alibaba_2023::FORMAT,
    alibaba_2020::FORMAT,
    helios::FORMAT,
    philly_table::FORMAT,
    submissions::FORMAT,
    alibaba_2020::WITHOUT_HEADER,
    script::WITHOUT_MARK,
];

/// The start of a file.
pub(super) struct Head<'a> {
    /// Its name, without the extension of a compressed file.
    pub(super) name: &'a str,
    /// Whether it starts with `#!`.
    pub(super) interpreter: bool,
    /// The first line that is not empty and not a comment.
    pub(super) first: &'a str,
}

impl Head<'_> {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(self.name).extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
    }
}

/// The names of all formats, for messages.
pub fn formats() -> String {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names.join(", ")
}

/// Reads a file that is a JSON array.
pub(super) fn read_json(reader: Box<dyn BufRead + '_>, draft: &mut Draft<'_>) -> Result<(), (Option<u64>, TraceProblem)> {
    let json = FORMATS.into_iter().find_map(|format| if let Kind::Json(read) = format.kind { Some(read) } else { None });
    json.map_or_else(|| Err((None, TraceProblem::UnknownFormat(formats()))), |read| read(reader, draft))
}

/// Reads a file of lines, in the format that matches its start.
pub(super) fn read_lines(head: &Head<'_>, lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    for format in FORMATS {
        match format.kind {
            Kind::Lines { is, read } if is(head) => return read(head.name, lines, draft),
            Kind::Table { is, header, rows } if is(&Header::new(head.first)?) => return table::read(header, rows, lines, draft),
            _ => {}
        }
    }
    Err(TraceProblem::UnknownFormat(formats()))
}
