//! A log of bounded size: its beginning, its end, and a line in between with the missing size.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::folder::private;
use crate::untrusted::open_file;

/// A smaller log could not hold the line in between.
const MIN_LIMIT: u64 = 4096;

/// The line in between, before and after the number.
const LINE: (&str, &str) = ("\n[carma: ", " bytes left out here]\n");

/// The gap in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Where its line begins.
    pub(crate) at: u64,
    /// The length of the line.
    pub(crate) line: u64,
    /// How much is missing.
    pub(crate) left_out: u64,
}

impl Gap {
    /// Where the line begins in a log with this limit.
    pub(crate) fn place(limit: u64) -> u64 {
        limit.max(MIN_LIMIT) / 2
    }

    /// Reads the line, if there is one at that place.
    pub(crate) fn read(limit: u64, text: &[u8]) -> Option<Self> {
        let digits = text.strip_prefix(LINE.0.as_bytes())?;
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = digits.split_at(length);
        let left_out = std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| after.starts_with(LINE.1.as_bytes()))?;
        Some(Self { at: Self::place(limit), line: (LINE.0.len() + length + LINE.1.len()) as u64, left_out })
    }
}

/// A log that never takes more disk space than its limit. Its first half is the beginning of the output, the rest the end: at least a quarter of the
/// limit. The file is a complete log at any time, also after a crash.
pub(super) struct BoundedLog {
    path: PathBuf,
    /// Made with the first output.
    file: Option<File>,
    size: u64,
    limit: u64,
    /// Where the last part begins, and how much is missing before it.
    end_begins: u64,
    left_out: u64,
    /// How much could not be written, and why.
    failed: Option<(u64, io::Error)>,
}

impl BoundedLog {
    /// An empty log that only the supervisor's own user may read: others read it through the manager.
    pub(super) fn new(path: PathBuf, limit: u64) -> Self {
        let limit = limit.max(MIN_LIMIT);
        Self { path, file: None, size: 0, limit, end_begins: limit / 2, left_out: 0, failed: None }
    }

    /// The number of bytes that were ever written to it.
    pub(super) fn written(&self) -> u64 {
        if self.left_out == 0 { self.size } else { self.size - self.end_begins + self.limit / 2 + self.left_out }
    }

    /// Appends. A full disk costs some of the log, not the job.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let added = if self.size >= self.limit { self.drop_middle().map(|()| 0) } else { self.add(rest) };
            match added {
                Ok(added) => rest = &rest[added..],
                Err(error) => {
                    self.failed = Some((self.failed.as_ref().map_or(0, |(lost, _)| *lost) + rest.len() as u64, error));
                    return;
                }
            }
        }
    }

    /// Notes in the log how much could not be written.
    pub(super) fn finish(mut self) {
        if let Some((lost, error)) = self.failed.take() {
            self.write(format!("\n[carma: {lost} bytes could not be written here: {error}]\n").as_bytes());
        }
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.limit - self.size).unwrap_or(usize::MAX);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(private(&self.path)?),
        };
        let added = file.write(&bytes[..bytes.len().min(room)])?;
        if added == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.size += added as u64;
        Ok(added)
    }

    /// Keeps the beginning and the last quarter, in a new file that replaces the old one.
    fn drop_middle(&mut self) -> io::Result<()> {
        let (beginning, end) = (self.limit / 2, self.limit / 4);
        let left_out = self.left_out + (self.size - end - self.end_begins);
        let line = format!("{}{left_out}{}", LINE.0, LINE.1);
        let new = self.path.with_extension("log.new");
        let mut file = private(&new)?;
        let old = &mut open_file(&self.path)?;
        copy(old, 0, beginning, &mut file)?;
        file.write_all(line.as_bytes())?;
        copy(old, self.size - end, end, &mut file)?;
        fs::rename(&new, &self.path)?;
        self.file = Some(file);
        self.end_begins = beginning + line.len() as u64;
        self.size = self.end_begins + end;
        self.left_out = left_out;
        Ok(())
    }
}

fn copy(from: &mut File, offset: u64, length: u64, to: &mut File) -> io::Result<()> {
    from.seek(SeekFrom::Start(offset))?;
    let copied = io::copy(&mut io::Read::take(from, length), to)?;
    if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limit: u64, pieces: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = BoundedLog::new(path.clone(), limit);
        for piece in pieces {
            log.write(&piece);
            assert!(fs::metadata(&path).unwrap().len() <= limit);
        }
        log.finish();
        fs::read(path).unwrap()
    }

    #[test]
    fn a_short_log_is_kept_as_it_is() {
        let text = vec![b'x'; 4096];
        assert_eq!(written(4096, [text.clone()].into_iter()), text);
    }

    #[test]
    fn of_a_long_log_beginning_and_end_are_kept_and_the_rest_is_counted() {
        for size in [1, 7, 1000, 9999] {
            let all: Vec<u8> = (0..20_000).flat_map(|line| format!("{line}\n").into_bytes()).collect();
            let kept = written(8192, all.chunks(size).map(<[u8]>::to_vec));
            assert_eq!(kept[..4096], all[..4096]);
            let gap = Gap::read(8192, &kept[4096..]).unwrap();
            let end = (gap.at + gap.line) as usize;
            assert_eq!(kept[end..], all[end - gap.line as usize + gap.left_out as usize..]);
            let text = String::from_utf8(kept).unwrap();
            let (before, after) = text.split_once("[carma: ").unwrap();
            let (left_out, end) = after.split_once(" bytes left out here]\n").unwrap();
            assert!(all.ends_with(end.as_bytes()) && end.len() >= 2048, "{} bytes of the end", end.len());
            assert_eq!(before.len() - 1 + left_out.parse::<usize>().unwrap() + end.len(), all.len());
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let mut log = BoundedLog::new(path.clone(), 4096);
        let good = log.file.replace(File::options().write(true).open("/dev/full").unwrap());
        log.write(b"lost");
        log.file = good;
        log.write(b"kept");
        log.finish();
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            "kept\n[carma: 4 bytes could not be written here: No space left on device (os error 28)]\n"
        );
    }
}
