//! Input of a trace: decompressed, limited in size, and split into lines of bounded length.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::error::TraceProblem;

/// Size limits of a trace, so that a broken or hostile file is refused before it fills memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// Bytes of a line. Not applied to job logs in JSON.
    pub line_bytes: usize,
    /// Total bytes, decompressed. Reading stops at this limit.
    pub total_bytes: u64,
    /// Number of jobs.
    pub jobs: usize,
}

impl Default for ReadLimits {
    /// Lines of 1 MiB, 4 GiB in total, 10 million jobs.
    fn default() -> Self {
        Self { line_bytes: 1 << 20, total_bytes: 4 << 30, jobs: 10_000_000 }
    }
}

/// Decompresses gzip, and stops at the limit.
pub(super) fn open<'a>(mut reader: impl BufRead + 'a, limits: &ReadLimits) -> io::Result<Box<dyn BufRead + 'a>> {
    const MAGIC: &[u8] = &[0x1f, 0x8b];
    const CHUNK: usize = 1 << 16;
    let unpacked: Box<dyn Read + 'a> =
        if reader.fill_buf()?.starts_with(MAGIC) { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    Ok(Box::new(BufReader::with_capacity(CHUNK, Limited { reader: unpacked, left: limits.total_bytes, limit: limits.total_bytes })))
}

/// A reader that fails once it has passed the limit.
struct Limited<R> {
    reader: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(TraceProblem::TooLarge(self.limit)))?;
        Ok(read)
    }
}

/// Lines of bounded length, counted from 1, without line endings.
pub(super) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    limit: usize,
    number: u64,
    buffer: Vec<u8>,
    /// Lines read to detect the format; they are read again.
    looked_at: VecDeque<String>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(reader: Box<dyn BufRead + 'a>, limits: &ReadLimits) -> Self {
        Self { reader, limit: limits.line_bytes, number: 0, buffer: Vec::new(), looked_at: VecDeque::new() }
    }

    /// Number of the last line read, if any.
    pub(super) fn number(&self) -> Option<u64> {
        Some(self.number).filter(|number| *number > 0)
    }

    /// Sets the line that an error refers to, if it is not the last one.
    pub(super) const fn point_at(&mut self, line: u64) {
        self.number = line;
    }

    /// The next line.
    pub(super) fn next(&mut self) -> Result<Option<&str>, TraceProblem> {
        self.buffer.clear();
        if let Some(line) = self.looked_at.pop_front() {
            self.number += 1;
            self.buffer.extend(line.as_bytes());
        } else if !self.fill()? {
            return Ok(None);
        }
        let line = std::str::from_utf8(&self.buffer).map_err(|_| TraceProblem::NotText)?;
        // Some spreadsheets write a byte order mark first.
        Ok(Some(if self.number == 1 { line.trim_start_matches('\u{feff}') } else { line }))
    }

    /// Peeks at the lines up to the first that `enough` accepts, or at most a thousand. They are read again.
    pub(super) fn look_ahead(&mut self, enough: impl Fn(&str) -> bool) -> Result<Vec<String>, TraceProblem> {
        const FAR_ENOUGH: usize = 1000;
        let mut seen = Vec::new();
        while seen.len() < FAR_ENOUGH
            && let Some(line) = self.next()?
        {
            seen.push(line.to_owned());
            if enough(line) {
                break;
            }
        }
        self.number = 0;
        self.looked_at = seen.iter().cloned().collect();
        Ok(seen)
    }

    /// Reads a line into the buffer; false at the end.
    fn fill(&mut self) -> Result<bool, TraceProblem> {
        // One byte above the limit plus the line ending is enough to detect a long line; the rest is never read.
        let most = self.limit as u64 + 2;
        if self.reader.by_ref().take(most).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        for end in [b'\n', b'\r'] {
            if self.buffer.last() == Some(&end) {
                self.buffer.pop();
            }
        }
        if self.buffer.len() > self.limit { Err(TraceProblem::LineTooLong(self.limit)) } else { Ok(true) }
    }
}
