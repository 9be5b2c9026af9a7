//! Follows a log file of an attempt, so that the manager gets a copy.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use crate::supervise::Gap;
use crate::untrusted::open_file;

/// The most bytes of one piece.
const PIECE: u64 = 64 << 10;

/// A position in a log file whose middle may be dropped.
#[derive(Debug)]
pub(super) struct LogTail {
    path: PathBuf,
    /// The most that is kept of the log.
    limit: u64,
    /// The file that the positions are about.
    inode: u64,
    sent: u64,
    /// The manager has taken everything before this.
    confirmed: u64,
    /// The position that the manager confirms by its answer to this beat.
    at_beat: Option<(u64, u64)>,
}

/// What was added to a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Added {
    pub(super) offset: u64,
    pub(super) replaces: bool,
    pub(super) bytes: Vec<u8>,
}

impl LogTail {
    pub(super) fn new(path: PathBuf, limit: u64) -> Self {
        Self { path, limit, inode: 0, sent: 0, confirmed: 0, at_beat: None }
    }

    /// The next piece; none if there is nothing new, or it cannot be read now.
    pub(super) fn next(&mut self) -> Option<Added> {
        let file = open_file(&self.path).ok()?;
        let data = file.metadata().ok()?;
        let replaces = self.inode != 0 && self.inode != data.ino();
        if replaces {
            // The first half stays the same when the middle is dropped.
            let kept = Gap::place(self.limit).min(self.sent);
            (self.sent, self.confirmed, self.at_beat) = (kept, kept, None);
        }
        self.inode = data.ino();
        let bytes = read(&file, self.sent, data.len().saturating_sub(self.sent).min(PIECE))?;
        if bytes.is_empty() && !replaces {
            return None;
        }
        let offset = self.sent;
        self.sent += bytes.len() as u64;
        Some(Added { offset, replaces, bytes })
    }

    /// A beat follows what was sent.
    pub(super) fn beat(&mut self, number: u64) {
        self.at_beat.get_or_insert((number, self.sent));
    }

    /// The manager answered a beat.
    pub(super) fn answered(&mut self, number: u64) {
        if let Some((_, position)) = self.at_beat.take_if(|(beat, _)| *beat <= number) {
            self.confirmed = self.confirmed.max(position.min(self.sent));
        }
    }

    /// A new connection: what was not confirmed is sent again.
    pub(super) fn send_again(&mut self) {
        (self.sent, self.at_beat) = (self.confirmed, None);
    }
}

fn read(file: &File, offset: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, offset).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_log_is_followed_also_when_its_middle_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = LogTail::new(path.clone(), 8192);
        assert_eq!(tail.next(), None, "there is not a file yet");
        fs::write(&path, "ab").unwrap();
        assert_eq!(tail.next(), Some(Added { offset: 0, replaces: false, bytes: b"ab".to_vec() }));
        assert_eq!(tail.next(), None);
        tail.beat(1);
        fs::write(&path, "abcd").unwrap();
        assert_eq!(tail.next().unwrap().offset, 2);
        tail.answered(1);
        tail.send_again();
        assert_eq!(tail.next(), Some(Added { offset: 2, replaces: false, bytes: b"cd".to_vec() }), "it was not confirmed");
        fs::write(folder.path().join("new"), [vec![b'x'; 4096], b"[gap]".to_vec()].concat()).unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        let replaced = tail.next().unwrap();
        assert_eq!((replaced.offset, replaced.replaces, replaced.bytes.len()), (4, true, 4097));
    }
}
