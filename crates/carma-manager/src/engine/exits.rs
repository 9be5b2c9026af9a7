//! The end of an attempt: what is left of it, gathered where nobody waits, and the judgement.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use carma_core::AttemptId;
use rustix::fs::OFlags;

use crate::attempt::{Ended, Exit};
use crate::launch::remove_container;
use crate::supervise::{AttemptFolder, read_note};
use crate::untrusted::open_file;

/// The most of each log that a judgement goes by.
const TAIL: u64 = 64 << 10;
/// Signal 9, as a code of shells.
const KILLED: i32 = 137;

/// What is left of an attempt.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) attempt: AttemptId,
    /// How it ended; unset: its supervisors died.
    pub(super) ended: Option<Ended>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// The kernel's log, where it may say who was killed for want of memory.
    pub(super) kernel_log: Option<String>,
}

impl Remains {
    /// Gathers what is left of an attempt that has ended or is lost. The program is the one that becomes shims.
    pub(super) fn gather(attempt: AttemptId, folder: &AttemptFolder, ended: Option<Ended>, program: &Path) -> Self {
        if ended.is_none() {
            // It belongs to a daemon, and nobody else is left who would remove it.
            remove_container(folder, program);
        }
        let killed = ended.as_ref().is_some_and(|ended| matches!(ended.exit, Exit::Signal(9) | Exit::Code(KILLED)));
        Self {
            attempt,
            ended,
            stdout: tail(&folder.output()),
            stderr: tail(&folder.errors()),
            kernel_log: killed.then(kernel_log).flatten(),
        }
    }
}

/// The end of a log; nothing where its owner does not let us read it at once.
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

/// What the kernel has said, where we may read it.
fn kernel_log() -> Option<String> {
    let mut file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open("/dev/kmsg").ok()?;
    let mut log = String::new();
    let mut record = [0; 8192];
    // One record a read, until there are no more; one that was overwritten meanwhile is left out.
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

/// How far an attempt says it is, where it does: a number from 0 to 1, or with a percent sign.
pub(super) fn progress(folder: &AttemptFolder) -> Option<f64> {
    const LONGEST: u64 = 64;
    parse_progress(&read_note(&folder.progress(), LONGEST)?)
}

fn parse_progress(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn progress_is_a_share_or_a_percentage() {
        assert_eq!(
            ["0.25\n", " 40 %", "1", "7", "-1", "half", "nan"].map(parse_progress),
            [Some(0.25), Some(0.4), Some(1.0), None, None, None, None]
        );
    }

    #[test]
    fn of_a_long_log_the_end_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, [vec![b'a'; 100_000], b"the end".to_vec()].concat()).unwrap();
        let tail = tail(&path);
        assert!(tail.len() as u64 == TAIL && tail.ends_with(b"the end"));
        assert!(super::tail(&folder.path().join("none")).is_empty());
    }
}
