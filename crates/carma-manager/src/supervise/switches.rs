//! The order of a job's two logs: where the job went from one stream to the other.
//!
//! The file holds numbers of eight bytes. Each is the position in the current stream at which the job went to the other; it begins with standard
//! output. A position counts all bytes ever written, so it stays valid when the middle of a log is dropped. A number is written before the output
//! that follows it.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use super::folder::private;

/// The share of the log limit that the file may take.
const SHARE: u64 = 64;
/// The bytes of a number.
pub(crate) const NUMBER: u64 = 8;

/// The switches of a running job.
pub(super) struct SwitchLog {
    path: PathBuf,
    /// Created with the first switch: most jobs use one stream.
    file: Option<File>,
    current: usize,
    /// How many more fit. After the last one, the order is no longer known.
    left: u64,
}

impl SwitchLog {
    /// No switches yet, beside logs with this limit.
    pub(super) fn new(path: PathBuf, log_limit: u64) -> Self {
        Self { path, file: None, current: 0, left: (log_limit / SHARE / NUMBER).max(64) }
    }

    /// Output of this stream follows. `written` is the position in each.
    pub(super) fn follows(&mut self, stream: usize, written: [u64; 2]) {
        if stream == self.current || self.left == 0 {
            return;
        }
        // Half a number would shift all later ones.
        self.left = if self.write(written[self.current]).is_ok_and(|length| length as u64 == NUMBER) { self.left - 1 } else { 0 };
        self.current = stream;
    }

    fn write(&mut self, number: u64) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(private(&self.path)?),
        };
        file.write(&number.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_the_stream_are_written_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switches");
        let mut log = SwitchLog::new(path.clone(), 1);
        log.follows(0, [0, 0]);
        log.follows(0, [5, 0]);
        log.follows(1, [9, 0]);
        log.follows(1, [9, 3]);
        log.follows(0, [9, 4]);
        let numbers = |path: &PathBuf| -> Vec<u64> {
            let bytes = std::fs::read(path).unwrap();
            bytes.chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect()
        };
        assert_eq!(numbers(&path), [9, 4]);
        (0..1000).for_each(|number| log.follows(number % 2, [9, 4]));
        assert_eq!(numbers(&path).len(), 64);
    }
}
