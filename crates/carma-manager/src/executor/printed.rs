//! Follows what attempts print, for their progress: on a thread of its own, because a slow disk must hold up nothing else.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use carma_core::AttemptId;
use carma_estimate::durations::epochs;

use super::tracker::{Stage, Tracker};
use crate::api::LogStream;
use crate::progress::OutputProgress;
use crate::supervise::AttemptFolder;
use crate::untrusted::open_file;

/// How often the logs are checked. One that did not grow costs a system call.
const PERIOD: Duration = Duration::from_millis(250);
/// The most that is read of a log at a time, which takes a few milliseconds. Earlier output is skipped.
const MOST_BYTES: u64 = 64 << 10;

/// A running attempt.
#[derive(Debug)]
struct Followed {
    progress: OutputProgress,
    /// How much of standard output and standard error was read.
    read: [u64; 2],
}

/// Starts the thread. It ends when the executor is dropped.
pub(super) fn follow(tracker: &Arc<Tracker>) -> io::Result<()> {
    let tracker = Arc::downgrade(tracker);
    thread::Builder::new().name("printed".to_owned()).spawn(move || run(&tracker)).map(drop)
}

fn run(tracker: &Weak<Tracker>) {
    let mut followed: HashMap<AttemptId, Followed> = HashMap::new();
    while let Some(tracker) = tracker.upgrade() {
        let running: Vec<AttemptId> = {
            let attempts = tracker.attempts();
            attempts.iter().filter(|(_, known)| matches!(known.stage, Stage::Running(_))).map(|(attempt, _)| *attempt).collect()
        };
        followed.retain(|attempt, _| running.contains(attempt));
        for attempt in running {
            let folder = tracker.folder(attempt);
            let known = followed.entry(attempt).or_insert_with(|| Followed::new(&folder));
            if known.read_more(&folder)
                && let Some(known_to_all) = tracker.attempts().get_mut(&attempt)
            {
                known_to_all.printed = known.progress.done();
            }
        }
        drop(tracker);
        thread::sleep(PERIOD);
    }
}

impl Followed {
    fn new(folder: &AttemptFolder) -> Self {
        let command = folder.order().ok().flatten().map(|order| order.command).unwrap_or_default();
        Self { progress: OutputProgress::new(epochs(&command)), read: [0; 2] }
    }

    /// Reads what is new. False if nothing is.
    fn read_more(&mut self, folder: &AttemptFolder) -> bool {
        let logs = [(LogStream::Stdout, folder.output()), (LogStream::Stderr, folder.errors())];
        let mut grew = false;
        for (stream, path) in logs {
            // A log that cannot be read now may be readable later.
            let Ok(bytes) = new_bytes(&path, &mut self.read[stream as usize]) else { continue };
            self.progress.read(stream, &bytes);
            grew |= !bytes.is_empty();
        }
        grew
    }
}

/// New output of a log. A log that is shorter than before has lost its middle.
fn new_bytes(path: &Path, read: &mut u64) -> io::Result<Vec<u8>> {
    let length = std::fs::symlink_metadata(path)?.len();
    if length == *read {
        return Ok(Vec::new());
    }
    let from = if length < *read { length } else { *read };
    let from = from.max(length.saturating_sub(MOST_BYTES));
    let mut file: File = open_file(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length - from).read_to_end(&mut bytes)?;
    *read = length;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_bounded_amount_of_new_output_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut read) = (folder.path().join("log"), 0);
        assert!(new_bytes(&path, &mut read).is_err());
        fs::write(&path, "one").unwrap();
        assert_eq!(new_bytes(&path, &mut read).unwrap(), b"one");
        assert_eq!(new_bytes(&path, &mut read).unwrap(), b"");
        fs::write(&path, format!("one{}two", "x".repeat(100_000))).unwrap();
        let bytes = new_bytes(&path, &mut read).unwrap();
        assert!(bytes.len() as u64 == MOST_BYTES && bytes.ends_with(b"two"));
        fs::write(&path, "short").unwrap();
        assert_eq!(new_bytes(&path, &mut read).unwrap(), b"", "its middle was dropped");
        fs::write(&path, "short, then more").unwrap();
        assert_eq!(new_bytes(&path, &mut read).unwrap(), b", then more");
    }
}
