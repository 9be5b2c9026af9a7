//! A process with the user's rights that looks for changes in the job's checkpoint folder, which the user owns.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;

use super::folder::{AttemptFolder, Checkpointed};
use super::fork::is_ready;
use super::fork_as_user::fork_as_user;
use super::supervisor_log::log_line;
use crate::attempt::Order;

/// The time between two scans.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the start and the end of a job wait for a scan.
const SCAN_LIMIT: Duration = Duration::from_secs(5);
/// Limit of scanned files: jobs keep a few checkpoints, not thousands.
const MAX_FILES: usize = 256;

/// The scanning process, from the side of the shim.
pub(super) struct CheckpointScan {
    process: Pid,
    /// Closed, it asks for the last scan.
    last: Option<OwnedFd>,
    changes: File,
    ended: bool,
}

impl CheckpointScan {
    /// Starts the process, if the job has such a folder.
    pub(super) fn start(order: &Order) -> io::Result<Option<Self>> {
        let Some(path) = &order.checkpoint_folder else { return Ok(None) };
        let ((stop, last), (changes, reports)) = (io::pipe()?, io::pipe()?);
        let process = fork_as_user(order, &[stop.as_fd(), reports.as_fd()], || scan(path, &stop, &reports))?;
        let changes = File::from(OwnedFd::from(changes));
        ioctl_fionbio(&changes, true)?;
        Ok(Some(Self { process, last: Some(last.into()), changes, ended: false }))
    }

    /// Waits for the first scan, and records it: checkpoints of earlier attempts are no new ones.
    pub(super) fn wait_for_first(&mut self, folder: &AttemptFolder) {
        is_ready(&self.changes, PollFlags::IN, Instant::now() + SCAN_LIMIT);
        self.record(folder);
    }

    pub(super) fn process(&self) -> Pid {
        self.process
    }

    /// The pipe to poll, until the process ends.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        self.last.is_some().then(|| PollFd::new(&self.changes, PollFlags::IN))
    }

    /// Records the last change, if there is a new one.
    pub(super) fn record(&mut self, folder: &AttemptFolder) {
        let latest = std::iter::from_fn(|| self.next()).last();
        if let Some(Err(error)) = latest.map(|found| folder.write_checkpointed(found)) {
            log_line(format_args!("cannot record a checkpoint: {error}"));
        }
    }

    /// Waits for the last scan, and records it.
    pub(super) fn finish(mut self, folder: &AttemptFolder) {
        let until = Instant::now() + SCAN_LIMIT;
        // The process makes its last scan when this is closed, and ends.
        self.last = None;
        while is_ready(&self.changes, PollFlags::IN, until) && !self.ended {
            self.record(folder);
        }
    }

    /// The next report.
    fn next(&mut self) -> Option<Checkpointed> {
        let mut message = [0; 12];
        match self.changes.read(&mut message) {
            Ok(12) => Some(Checkpointed { changed: decode(message) }),
            Ok(_) => {
                (self.ended, self.last) = (true, None);
                None
            }
            // There is none now.
            Err(_) => None,
        }
    }
}

/// The work of the process: reports the last change of the folder at once, and each new one.
fn scan(folder: &Path, stop: &impl AsFd, mut reports: impl Write) -> io::Result<()> {
    let mut known = last_change(folder);
    reports.write_all(&encode(known))?;
    loop {
        let is_last = is_ready(stop, PollFlags::IN, Instant::now() + INTERVAL);
        let changed = last_change(folder);
        if changed != known {
            reports.write_all(&encode(changed))?;
        }
        known = changed;
        if is_last {
            return Ok(());
        }
    }
}

/// The time of the last write in a folder, if it has files. Links are not followed.
pub(crate) fn last_change(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.take(MAX_FILES).flatten();
    let newest = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()?;
    // A file that replaces another one changes the folder.
    let own = fs::symlink_metadata(folder).and_then(|data| data.modified()).ok();
    own.max(Some(newest))
}

/// Seconds and nanoseconds; zero: no change. A time before 1970, which only a user can set, counts as none.
fn encode(time: Option<SystemTime>) -> [u8; 12] {
    let since = time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    let mut message = [0; 12];
    message[..8].copy_from_slice(&since.as_secs().to_le_bytes());
    message[8..].copy_from_slice(&since.subsec_nanos().to_le_bytes());
    message
}

fn decode(message: [u8; 12]) -> Option<SystemTime> {
    let (seconds, nanoseconds) = (message.first_chunk()?, message.last_chunk()?);
    let since = Duration::new(u64::from_le_bytes(*seconds), u32::from_le_bytes(*nanoseconds));
    SystemTime::UNIX_EPOCH.checked_add(since).filter(|_| !since.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_changes_with_its_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_change(folder.path()), None, "it is empty");
        let file = folder.path().join("state");
        fs::write(&file, "1").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(last_change(folder.path()), Some(later));
        assert_eq!([None, Some(later)].map(|time| decode(encode(time))), [None, Some(later)]);
    }
}
