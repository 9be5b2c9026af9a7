//! Copies of the logs of attempts on other servers, in the same places as those of local attempts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use crate::executor::{Leftovers, TAIL};
use crate::link::{LogPiece, LogStream};
use crate::supervise::AttemptFolder;

/// Writes a piece of a log. Doing it again changes nothing.
pub(super) fn write(state: &Path, piece: &LogPiece) -> io::Result<()> {
    let folder = AttemptFolder::of(state, piece.attempt);
    DirBuilder::new().recursive(true).mode(0o711).create(folder.path())?;
    let path = match piece.stream {
        LogStream::Output => folder.output(),
        LogStream::Errors => folder.errors(),
    };
    if piece.replaces {
        return replace(&path, piece);
    }
    open(&path)?.write_all_at(&piece.bytes, piece.offset)
}

/// Writes the logs of an attempt whose agent is gone, where its leftovers hold all of them.
pub(crate) fn complete(state: &Path, leftovers: &Leftovers) {
    for (stream, bytes) in [(LogStream::Output, &leftovers.stdout), (LogStream::Errors, &leftovers.stderr)] {
        if !bytes.is_empty() && (bytes.len() as u64) < TAIL {
            let piece = LogPiece { attempt: leftovers.attempt, stream, offset: 0, replaces: false, bytes: bytes.clone() };
            if let Err(error) = write(state, &piece) {
                tracing::warn!("cannot write the log of {}: {error}", leftovers.attempt);
            }
        }
    }
}

/// A log whose middle was dropped becomes a new file, so that readers of the old one notice.
fn replace(path: &Path, piece: &LogPiece) -> io::Result<()> {
    let new = path.with_extension("log.new");
    let _ = fs::remove_file(&new);
    let mut file = open(&new)?;
    if let Ok(old) = File::open(path) {
        io::copy(&mut old.take(piece.offset), &mut file)?;
    }
    file.write_all_at(&piece.bytes, piece.offset)?;
    fs::rename(&new, path)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use carma_core::{AttemptId, JobId};

    use super::*;

    #[test]
    fn pieces_make_the_same_log() {
        let state = tempfile::tempdir().unwrap();
        let attempt = AttemptId { job: JobId(3), number: 1 };
        let piece = |offset, replaces, text: &str| {
            let piece = LogPiece { attempt, stream: LogStream::Errors, offset, replaces, bytes: text.into() };
            write(state.path(), &piece).unwrap();
        };
        let log = || fs::read_to_string(AttemptFolder::of(state.path(), attempt).errors()).unwrap();
        piece(0, false, "one ");
        piece(4, false, "two ");
        piece(4, false, "two ");
        piece(8, false, "three");
        assert_eq!(log(), "one two three");
        piece(4, true, "[gap] three");
        piece(15, false, " four");
        assert_eq!(log(), "one [gap] three four");
    }
}
