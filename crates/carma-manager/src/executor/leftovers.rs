//! The leftovers of an ended attempt, gathered for the verdict by threads that may block.

use std::fs::{File, symlink_metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use carma_core::AttemptId;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::attempt::{Ended, Exit};
use crate::launch::remove_container;
use crate::supervise::{AttemptFolder, LaunchServer};
use crate::untrusted::open_file;

/// Bytes of each log that a verdict uses.
pub(crate) const TAIL: u64 = 64 << 10;
/// Signal 9, as an exit code of shells.
const KILLED: i32 = 137;

/// The leftovers of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Leftovers {
    pub(crate) attempt: AttemptId,
    /// How it ended; unset: its supervisors died.
    pub(crate) ended: Option<Ended>,
    /// The end of its output.
    #[serde(with = "crate::text_bytes")]
    pub(crate) stdout: Vec<u8>,
    /// The end of its errors.
    #[serde(with = "crate::text_bytes")]
    pub(crate) stderr: Vec<u8>,
    /// The size of both logs.
    pub(crate) log_bytes: u64,
    /// The kernel's log, which may name the process that the OOM killer ended.
    pub(crate) kernel_log: Option<String>,
}

impl Leftovers {
    /// Gathers the leftovers of an ended or lost attempt.
    pub(super) fn gather(attempt: AttemptId, folder: &AttemptFolder, ended: Option<Ended>, server: &Arc<LaunchServer>) -> Self {
        if ended.is_none() {
            // The container belongs to a daemon, and the supervisors that would remove it are gone.
            remove_container(folder, server);
        }
        let killed = ended.as_ref().is_some_and(|ended| matches!(ended.exit, Exit::Signal(9) | Exit::Code(KILLED)));
        Self {
            attempt,
            ended,
            stdout: tail(&folder.output()),
            stderr: tail(&folder.errors()),
            log_bytes: [folder.output(), folder.errors()].iter().map(|log| symlink_metadata(log).map_or(0, |data| data.len())).sum(),
            kernel_log: killed.then(kernel_log).flatten(),
        }
    }
}

/// The end of a log; empty if it is not readable at once.
fn tail(path: &Path) -> Vec<u8> {
    let read = || {
        let mut file = open_file(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    read().unwrap_or_default()
}

/// The kernel's log, if readable.
fn kernel_log() -> Option<String> {
    let mut file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open("/dev/kmsg").ok()?;
    let mut log = String::new();
    let mut record = [0; 8192];
    // One record per read, until the end. A record that was overwritten meanwhile is left out.
    loop {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(length) => log.push_str(&String::from_utf8_lossy(&record[..length])),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
            Err(_) => break,
        }
    }
    Some(log)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_end_of_a_long_log_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, [vec![b'a'; 100_000], b"the end".to_vec()].concat()).unwrap();
        let tail = tail(&path);
        assert!(tail.len() as u64 == TAIL && tail.ends_with(b"the end"));
        assert!(super::tail(&folder.path().join("none")).is_empty());
    }
}
