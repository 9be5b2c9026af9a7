//! Both logs of an attempt as one text, in the order in which they were written.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::cursor::{CHUNK, LogCursor, MAX_SCAN, last_lines_of};
use crate::supervise::{AttemptFolder, NUMBER};
use crate::untrusted::open_file;

/// Reads both logs. Without a record of the order, or after its end, what is left of one follows the other.
#[derive(Debug)]
pub(super) struct MergedLog {
    /// Standard output and standard error.
    logs: [LogCursor; 2],
    switches: PathBuf,
    file: Option<File>,
    /// How many switches were read. The stream alternates with them.
    read: u64,
    /// Where the job left the current stream, if it did.
    until: Option<u64>,
    /// Text that was read already.
    pending: Vec<u8>,
}

impl MergedLog {
    /// At the start of the logs of an attempt with this size limit, if known.
    pub(super) fn new(folder: &AttemptFolder, limit: Option<u64>) -> Self {
        let logs = [folder.output(), folder.errors()].map(|path| LogCursor::new(path, limit));
        Self { logs, switches: folder.switches(), file: None, read: 0, until: None, pending: Vec::new() }
    }

    /// The number of bytes that were returned.
    pub(super) fn at(&self) -> u64 {
        (self.logs[0].at() + self.logs[1].at()).saturating_sub(self.pending.len() as u64)
    }

    /// The number of bytes written so far.
    pub(super) fn end(&mut self) -> io::Result<u64> {
        Ok(self.logs[0].end()? + self.logs[1].end()?)
    }

    /// The next piece; empty if there is none yet.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut text = std::mem::take(&mut self.pending);
        while (text.len() as u64) < CHUNK {
            let current = self.current();
            if self.until.is_none() {
                // Output before the next reading of the switches belongs to this stream.
                let end = self.logs[current].end()?;
                self.until = self.switch(self.read)?;
                if self.until.is_none() {
                    let mut piece = self.logs[current].read_until(end)?;
                    if piece.is_empty() {
                        piece = self.logs[1 - current].read()?;
                    }
                    if piece.is_empty() {
                        break;
                    }
                    text.extend(piece);
                    continue;
                }
            }
            let until = self.until.unwrap_or_default();
            let piece = if self.logs[current].at() < until { self.logs[current].read_until(until)? } else { Vec::new() };
            // A full disk may have cost some of the log.
            if piece.is_empty() {
                (self.read, self.until) = (self.read + 1, None);
            }
            text.extend(piece);
        }
        Ok(text)
    }

    /// Goes to the last lines.
    pub(super) fn seek_last_lines(&mut self, lines: u32) -> io::Result<()> {
        let ends = [self.logs[0].end()?, self.logs[1].end()?];
        let switches = self.count()?;
        let (mut parts, mut bytes, mut breaks) = (Vec::new(), 0, 0);
        // From the last stay in a stream backwards. The one after it has what the record does not cover.
        for stay in (0..=switches + 1).rev() {
            let log = (stay % 2) as usize;
            let end = if stay < switches { self.switch(stay)?.unwrap_or(ends[log]) } else { ends[log] };
            let begin = if stay < 2 { 0 } else { self.switch(stay - 2)?.unwrap_or_default() };
            let begin = begin.max(end.saturating_sub(MAX_SCAN.saturating_sub(bytes)));
            self.logs[log].go_to(begin);
            let mut part = Vec::new();
            while self.logs[log].at() < end {
                let piece = self.logs[log].read_until(end)?;
                if piece.is_empty() {
                    break;
                }
                part.extend(piece);
            }
            bytes += part.len() as u64;
            breaks += part.split(|byte| *byte == b'\n').count() - 1;
            parts.push(part);
            if breaks > lines as usize || bytes >= MAX_SCAN {
                break;
            }
        }
        let text = parts.into_iter().rev().flatten().collect::<Vec<u8>>();
        self.pending = last_lines_of(&text, lines).to_vec();
        (self.read, self.until) = (switches, None);
        self.logs.iter_mut().zip(ends).for_each(|(log, end)| log.go_to(end));
        Ok(())
    }

    const fn current(&self) -> usize {
        (self.read % 2) as usize
    }

    /// The number of switches so far.
    fn count(&mut self) -> io::Result<u64> {
        Ok(self.opened()?.map_or(Ok(0), |file| file.metadata().map(|data| data.len()))? / NUMBER)
    }

    /// The position of a switch, if there was one.
    fn switch(&mut self, number: u64) -> io::Result<Option<u64>> {
        let Some(file) = self.opened()? else { return Ok(None) };
        let mut bytes = [0; NUMBER as usize];
        match file.read_exact_at(&mut bytes, number * NUMBER) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            read => read.map(|()| Some(u64::from_le_bytes(bytes))),
        }
    }

    fn opened(&mut self) -> io::Result<Option<&File>> {
        if self.file.is_none() {
            match open_file(&self.switches) {
                // Attempts of earlier versions and of other servers have none.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                file => self.file = Some(file?),
            }
        }
        Ok(self.file.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Pieces of output, each with its stream, as a supervisor writes them.
    fn write(folder: &AttemptFolder, pieces: &[(usize, &str)], recorded: usize) {
        let mut logs = [String::new(), String::new()];
        let (mut switches, mut current) = (Vec::new(), 0);
        for (stream, text) in pieces {
            if *stream != current {
                switches.extend((logs[current].len() as u64).to_le_bytes());
                current = *stream;
            }
            logs[*stream] += text;
        }
        fs::write(folder.output(), &logs[0]).unwrap();
        fs::write(folder.errors(), &logs[1]).unwrap();
        fs::write(folder.switches(), &switches[..recorded.min(switches.len())]).unwrap();
    }

    fn rest(log: &mut MergedLog) -> String {
        let mut text = Vec::new();
        loop {
            match log.read().unwrap() {
                piece if piece.is_empty() => return String::from_utf8(text).unwrap(),
                piece => text.extend(piece),
            }
        }
    }

    const PIECES: [(usize, &str); 5] = [(1, "warning\n"), (0, "epoch 1\n"), (0, "epoch 2\n"), (1, "Traceback\nerror\n"), (0, "bye\n")];

    #[test]
    fn both_streams_are_one_text_in_order_also_as_they_grow() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = AttemptFolder::at(scratch.path());
        let mut log = MergedLog::new(&folder, Some(1 << 20));
        assert_eq!(rest(&mut log), "");
        let mut read = String::new();
        for pieces in 1..=PIECES.len() {
            write(&folder, &PIECES[..pieces], usize::MAX);
            read += &rest(&mut log);
        }
        let all: String = PIECES.iter().map(|(_, text)| *text).collect();
        assert_eq!((read.as_str(), log.at(), log.end().unwrap()), (all.as_str(), all.len() as u64, all.len() as u64));
        assert_eq!(rest(&mut MergedLog::new(&folder, None)), all);
    }

    #[test]
    fn the_last_lines_are_those_of_the_whole_text() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = AttemptFolder::at(scratch.path());
        write(&folder, &PIECES, usize::MAX);
        let all: String = PIECES.iter().map(|(_, text)| *text).collect();
        for lines in 0..8 {
            let mut log = MergedLog::new(&folder, None);
            log.seek_last_lines(lines).unwrap();
            let begin = all.match_indices('\n').rev().nth(lines as usize).map_or(0, |(at, _)| at + 1);
            assert_eq!(rest(&mut log), all[begin..], "{lines} lines");
        }
    }

    #[test]
    fn an_incomplete_order_loses_no_output() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = AttemptFolder::at(scratch.path());
        for recorded in [0, 7, 8, 16, 24] {
            write(&folder, &PIECES, recorded);
            let mut log = MergedLog::new(&folder, None);
            let mut text = rest(&mut log).lines().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(log.at(), log.end().unwrap());
            text.sort();
            assert_eq!(text, ["Traceback", "bye", "epoch 1", "epoch 2", "error", "warning"]);
            let mut log = MergedLog::new(&folder, None);
            log.seek_last_lines(100).unwrap();
            assert_eq!(rest(&mut log).lines().count(), 6);
        }
    }
}
