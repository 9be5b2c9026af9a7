//! A position in a log that grows, and whose middle may be dropped.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use crate::supervise::Gap;
use crate::untrusted::open_file;

/// Bytes per read.
pub(super) const CHUNK: u64 = 64 << 10;
/// Longer than the line in the gap.
const MAX_LINE: usize = 64;
/// The last lines are searched for in this many bytes at the end: the owner can make a log huge with holes that take no disk space.
pub(super) const MAX_SCAN: u64 = 4 << 20;
/// No job prints more.
const MAX_LEFT_OUT: u64 = 1 << 50;

/// Reads a log from a position on. The position counts all bytes ever written, so it stays valid when the middle of the log is dropped.
#[derive(Debug)]
pub(super) struct LogCursor {
    path: PathBuf,
    limit: Option<u64>,
    open: Option<OpenLog>,
    at: u64,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    gap: Option<Gap>,
}

impl LogCursor {
    /// At the start of a log with this size limit, if known.
    pub(super) fn new(path: PathBuf, limit: Option<u64>) -> Self {
        Self { path, limit, open: None, at: 0 }
    }

    /// Goes to the last lines.
    pub(super) fn seek_last_lines(&mut self, lines: u32) -> io::Result<()> {
        if let Some(log) = self.opened()? {
            let start = last_lines(&log.file, log.file.metadata()?.len(), lines)?;
            self.at = log.place_of(start);
        }
        Ok(())
    }

    /// The number of bytes written so far.
    pub(super) fn end(&mut self) -> io::Result<u64> {
        let length = |log: &OpenLog| Ok(log.place_of(log.file.metadata()?.len()));
        self.opened()?.map_or(Ok(0), length)
    }

    /// The position.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Goes to a position.
    pub(super) fn go_to(&mut self, at: u64) {
        self.at = at;
    }

    /// The next piece; empty if there is none yet.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        self.read_until(u64::MAX)
    }

    /// The next piece before a position. Only a gap in the log leads beyond it.
    pub(super) fn read_until(&mut self, until: u64) -> io::Result<Vec<u8>> {
        let mut place = self.at;
        let most = until.saturating_sub(place).min(CHUNK);
        let Some(log) = self.opened()? else { return Ok(Vec::new()) };
        let mut piece = log.read(&mut place, most)?;
        if piece.is_empty() && log.file.metadata()?.nlink() == 0 {
            // The file was replaced by one without its middle, which has the rest.
            self.open = None;
            if let Some(log) = self.opened()? {
                piece = log.read(&mut place, most)?;
            }
        }
        self.at = place;
        Ok(piece)
    }

    /// The log, if there is one.
    fn opened(&mut self) -> io::Result<Option<&OpenLog>> {
        if self.open.is_none() {
            let file = match open_file(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                other => other?,
            };
            let gap = self.limit.map_or(Ok(None), |limit| gap(&file, limit))?;
            self.open = Some(OpenLog { file, gap });
        }
        Ok(self.open.as_ref())
    }
}

/// The gap in a log with this limit.
fn gap(file: &File, limit: u64) -> io::Result<Option<Gap>> {
    let mut line = [0; MAX_LINE];
    let length = file.read_at(&mut line, Gap::place(limit))?;
    let size = file.metadata()?.len();
    Ok(Gap::read(limit, &line[..length]).filter(|gap| can_be(gap, size)))
}

/// Whether a gap is plausible in a file of this size: jobs may print such lines too. After a real gap, at least a quarter of the limit follows, and at
/// least as much is missing.
fn can_be(gap: &Gap, size: u64) -> bool {
    let quarter = gap.at / 2;
    (quarter..=MAX_LEFT_OUT).contains(&gap.left_out) && size >= gap.at + gap.line + quarter
}

impl OpenLog {
    /// The number of bytes written before this offset of the file.
    fn place_of(&self, position: u64) -> u64 {
        match self.gap {
            Some(gap) if position >= gap.at + gap.line => position - gap.line + gap.left_out,
            Some(gap) => position.min(gap.at),
            None => position,
        }
    }

    /// Reads from a position on, up to a number of bytes. Inside the gap, it returns the line about it.
    fn read(&self, place: &mut u64, most: u64) -> io::Result<Vec<u8>> {
        let (position, most) = match self.gap {
            Some(gap) if *place < gap.at => (*place, most.min(gap.at - *place)),
            Some(gap) if *place < gap.at + gap.left_out => {
                let line = self.piece(gap.at, gap.line)?;
                *place = gap.at + gap.left_out;
                return Ok(line);
            }
            Some(gap) => (*place - gap.left_out + gap.line, most),
            None => (*place, most),
        };
        let piece = self.piece(position, most)?;
        *place += piece.len() as u64;
        Ok(piece)
    }

    fn piece(&self, position: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; length as usize];
        let read = self.file.read_at(&mut piece, position)?;
        piece.truncate(read);
        Ok(piece)
    }
}

/// The last lines of a text.
pub(super) fn last_lines_of(text: &[u8], lines: u32) -> &[u8] {
    let mut breaks = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // The last line break starts no line.
    let ends_with_break = text.last() == Some(&b'\n');
    let begin = match lines {
        0 => Some(text.len()),
        lines => breaks.nth(lines as usize - usize::from(!ends_with_break)),
    };
    text.get(begin.unwrap_or_default()..).unwrap_or_default()
}

/// The start of the last lines, within the longest scan.
fn last_lines(file: &File, length: u64, lines: u32) -> io::Result<u64> {
    let (mut end, mut missing) = (length, lines);
    let first = length.saturating_sub(MAX_SCAN);
    let mut piece = vec![0; CHUNK as usize];
    while end > first {
        let start = end.saturating_sub(CHUNK).max(first);
        let part = &mut piece[..(end - start) as usize];
        file.read_exact_at(part, start)?;
        for (offset, _) in part.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let after = start + offset as u64 + 1;
            // The last line break starts no line.
            if after == length {
                continue;
            }
            missing = missing.saturating_sub(1);
            if missing == 0 {
                return Ok(if lines == 0 { length } else { after });
            }
        }
        end = start;
    }
    Ok(if lines == 0 { length } else { first })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const LIMIT: Option<u64> = Some(8192);

    fn all(cursor: &mut LogCursor) -> String {
        let mut text = Vec::new();
        loop {
            match cursor.read().unwrap() {
                piece if piece.is_empty() => return String::from_utf8(text).unwrap(),
                piece => text.extend(piece),
            }
        }
    }

    #[test]
    fn a_log_is_followed_as_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut cursor = LogCursor::new(path.clone(), LIMIT);
        assert_eq!(all(&mut cursor), "");
        fs::write(&path, "one\n").unwrap();
        assert_eq!(all(&mut cursor), "one\n");
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!((all(&mut cursor).as_str(), cursor.end().unwrap()), ("two\n", 8));
    }

    #[test]
    fn a_log_whose_middle_is_left_out_is_followed_without_gaps_or_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let written: String = (0..3000).flat_map(|number| [number.to_string(), "\n".to_owned()]).collect();
        let without_middle = |left_out: usize, end: usize| {
            let new = path.with_extension("new");
            let text = format!("{}\n[carma: {left_out} bytes left out here]\n{}", &written[..4096], &written[4096 + left_out..end]);
            fs::write(&new, text).unwrap();
            fs::rename(&new, &path).unwrap();
        };
        fs::write(&path, &written[..7000]).unwrap();
        let mut cursor = LogCursor::new(path.clone(), LIMIT);
        assert_eq!(all(&mut cursor), written[..7000]);
        // Nothing that was not read yet is missing.
        without_middle(2100, 9000);
        assert_eq!(all(&mut cursor), written[7000..9000]);
        // Some was missed, which is said.
        without_middle(6000, 12_500);
        assert_eq!(all(&mut cursor), format!("\n[carma: 6000 bytes left out here]\n{}", &written[10_096..12_500]));
        let mut afresh = LogCursor::new(path.clone(), LIMIT);
        assert_eq!(all(&mut afresh), fs::read_to_string(&path).unwrap());
        assert_eq!(afresh.at(), afresh.end().unwrap());
    }

    #[test]
    fn lines_that_look_like_gaps_are_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        for (left_out, after) in
            [("18446744073709551615", 4000), ("18446744073709551616", 4000), ("0", 4000), ("2047", 4000), ("9000", 100)]
        {
            let text = format!("{}\n[carma: {left_out} bytes left out here]\n{}", "x".repeat(4096), "y".repeat(after));
            fs::write(&path, &text).unwrap();
            let mut cursor = LogCursor::new(path.clone(), LIMIT);
            assert_eq!(cursor.end().unwrap(), text.len() as u64);
            cursor.seek_last_lines(1).unwrap();
            assert_eq!(all(&mut cursor), "y".repeat(after));
            let mut cursor = LogCursor::new(path.clone(), LIMIT);
            assert_eq!((all(&mut cursor), cursor.at()), (text.clone(), text.len() as u64));
        }
    }

    #[test]
    fn the_last_lines_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let tail = |text: &str, lines| {
            fs::write(&path, text).unwrap();
            let mut cursor = LogCursor::new(path.clone(), None);
            cursor.seek_last_lines(lines).unwrap();
            all(&mut cursor)
        };
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a\nb\n", 0), "");
        assert_eq!(tail("a\nb\n", 9), "a\nb\n");
        assert_eq!(tail("", 1), "");
        let long = "x".repeat(150_000);
        assert_eq!(tail(&format!("a\n{long}\n"), 1), format!("{long}\n"));
    }

    #[test]
    fn only_the_end_of_a_huge_sparse_log_is_scanned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        File::create(&path).unwrap().set_len(8 << 40).unwrap();
        let begin = std::time::Instant::now();
        let mut cursor = LogCursor::new(path, LIMIT);
        cursor.seek_last_lines(1).unwrap();
        assert_eq!(cursor.end().unwrap() - cursor.at(), MAX_SCAN);
        assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    }

    #[test]
    fn links_and_pipes_are_not_logs() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, path) = (folder.path().join("secret"), folder.path().join("stdout.log"));
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, &path).unwrap();
        assert!(LogCursor::new(path.clone(), LIMIT).read().is_err());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&secret, &path).unwrap();
        assert!(LogCursor::new(path.clone(), LIMIT).read().is_err());
        fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert!(LogCursor::new(path, LIMIT).read().is_err());
    }
}
