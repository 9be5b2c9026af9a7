//! Reading a trace: the format is told by its content, and by the file's extension where the content leaves it open.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::Trace;
use super::draft::Draft;
use super::error::{TraceError, TraceProblem};
use super::formats::{self, Table};
use super::input::{self, Lines, ReadLimits};
use crate::catalogue::Catalogue;

impl Trace {
    /// Reads a trace of any known format, packed by gzip or not:
    ///
    /// - a CSV table of submissions: a second and a workload, as [`Trace::write_csv`] writes it
    /// - CARMA's scripts of `sleep` and submit commands, and its `.rad` task files ([`RadTask`](super::RadTask))
    /// - Philly's job log in JSON, and tables made from it
    /// - Helios' tables
    /// - Alibaba's `pai_task_table` of 2020 (it has no time of submission; the start stands for it) and `openb_pod_list` of 2023
    ///
    /// Jobs of logs that used no GPU or never ran are left out and counted.
    pub fn read(path: &Path, catalogue: &Catalogue, limits: &ReadLimits) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| TraceProblem::Unreadable(error).at(&name, None))?;
        Self::parse(&name, BufReader::new(file), catalogue, limits)
    }

    /// As [`Trace::read`], from anything that gives bytes; the name is for messages, its extension a hint at the format.
    pub fn parse(name: &str, reader: impl BufRead, catalogue: &Catalogue, limits: &ReadLimits) -> Result<Self, TraceError> {
        let mut draft = Draft::new(catalogue, limits);
        let mut reader = input::open(reader, limits).map_err(|error| TraceProblem::from(error).at(name, None))?;
        let start = reader.fill_buf().map_err(|error| TraceProblem::from(error).at(name, None))?;
        if is_json(start) {
            let mark = if start.starts_with(ENCODING_MARK) { ENCODING_MARK.len() } else { 0 };
            reader.consume(mark);
            formats::read_philly_log(reader, &mut draft).map_err(|(line, problem)| problem.at(name, line))?;
        } else {
            let mut lines = Lines::new(reader, limits);
            read_lines(name, &mut lines, &mut draft).map_err(|problem| problem.at(name, lines.number()))?;
        }
        draft.finish().map_err(|problem| problem.at(name, None))
    }
}

/// What some editors begin a file with.
const ENCODING_MARK: &[u8] = "\u{feff}".as_bytes();

fn is_json(start: &[u8]) -> bool {
    let start = start.strip_prefix(ENCODING_MARK).unwrap_or(start).trim_ascii_start();
    // A test in a script begins with a bracket as well, but not with one before a brace.
    start.strip_prefix(b"[").is_some_and(|inside| matches!(inside.trim_ascii_start().first(), None | Some(b'{' | b']')))
}

fn read_lines(name: &str, lines: &mut Lines<'_>, draft: &mut Draft<'_>) -> Result<(), TraceProblem> {
    let bare = name.strip_suffix(".gz").unwrap_or(name);
    let has_extension = |extension: &str| Path::new(bare).extension().is_some_and(|own| own.eq_ignore_ascii_case(extension));
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let head = lines.look_ahead(is_content)?;
    let Some(first) = head.last().filter(|line| is_content(line)) else { return Ok(()) };
    let interpreter = head[0].starts_with("#!");
    if has_extension("rad") || (!interpreter && !has_extension("sh") && first.starts_with("conda activate")) {
        return formats::read_task(bare, lines, draft);
    }
    if interpreter || has_extension("sh") {
        return formats::read_script(lines, draft);
    }
    match Table::recognise(first)? {
        Some(table) => table.read(lines, draft),
        None if formats::is_command(first) => formats::read_script(lines, draft),
        None => Err(TraceProblem::UnknownFormat),
    }
}
