//! Reads a trace. The content decides the format, or the extension if the content is ambiguous.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::Trace;
use super::draft::Draft;
use super::error::{TraceError, TraceProblem};
use super::formats::{self, Head};
use super::input::{self, Lines, ReadLimits};
use crate::catalogue::Catalogue;

impl Trace {
    /// Reads a trace of any format in [`formats()`](super::formats()), with or without gzip.
    ///
    /// Skips and counts jobs of logs that used no GPU or never ran.
    pub fn read(path: &Path, catalogue: &Catalogue, limits: &ReadLimits) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceProblem::Unreadable(error).at(&name, None))?;
        Self::parse(&name, BufReader::new(file), catalogue, limits)
    }

    /// As [`Trace::read`], from any reader; the name is used in messages, and its extension as a hint at the format.
    pub fn parse(name: &str, reader: impl BufRead, catalogue: &Catalogue, limits: &ReadLimits) -> Result<Self, TraceError> {
        let mut draft = Draft::new(catalogue, limits);
        let mut reader = input::open(reader, limits).map_err(|error| TraceProblem::from(error).at(name, None))?;
        let start = reader.fill_buf().map_err(|error| TraceProblem::from(error).at(name, None))?;
        if is_json(start) {
            let mark = if start.starts_with(ENCODING_MARK) { ENCODING_MARK.len() } else { 0 };
            reader.consume(mark);
            formats::read_json(reader, &mut draft).map_err(|(line, problem)| problem.at(name, line))?;
        } else {
            let mut lines = Lines::new(reader, limits);
            read_lines(name, &mut lines, &mut draft).map_err(|problem| problem.at(name, lines.number()))?;
        }
        draft.finish().map_err(|problem| problem.at(name, None))
    }
}

/// Byte order mark that some editors write first.
const ENCODING_MARK: &[u8] = "\u{feff}".as_bytes();

fn is_json(start: &[u8]) -> bool {
    let start = start.strip_prefix(ENCODING_MARK).unwrap_or(start).trim_ascii_start();
    // A shell test begins with a bracket too, but not with a bracket before a brace.
    start.strip_prefix(b"[").is_some_and(|inside| matches!(inside.trim_ascii_start().first(), None | Some(b'{' | b']')))
}

fn read_lines(name: &str, lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let start = lines.look_ahead(is_content)?;
    let Some(first) = start.last().filter(|line| is_content(line)) else { return Ok(()) };
    let head = Head { name: name.strip_suffix(".gz").unwrap_or(name), interpreter: start[0].starts_with("#!"), first };
    formats::read_lines(&head, lines, draft)
}
