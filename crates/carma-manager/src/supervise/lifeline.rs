//! The lifeline of attempts that end with the process that started them, as in an agent on another server.
//!
//! The agent has one end of a pipe, and every guard the other: the kernel closes the agent's end when it dies. An agent that is stopped does not die,
//! so it also writes down until when its lease lasts. After that the manager may start the same jobs elsewhere, so the guard kills its job. The shim
//! looks too, because a killed guard leaves it alone with the job.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

/// How often guards and shims read the lease.
pub(super) const PERIOD: Duration = Duration::from_millis(500);
/// Digits of the time in the file: all writes have the same length, so no reader sees parts of two.
const DIGITS: usize = 20;

/// The agent's end. Attempts end when it is dropped.
#[derive(Debug)]
pub(crate) struct Lifeline {
    guards_end: PipeReader,
    _own_end: PipeWriter,
    lease: PathBuf,
    file: File,
}

impl Lifeline {
    /// With the lease in this file, which lasts for this long at first.
    pub(crate) fn new(lease: PathBuf, first: Duration) -> io::Result<Self> {
        let (guards_end, own_end) = io::pipe()?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lease)?;
        let lifeline = Self { guards_end, _own_end: own_end, lease, file };
        lifeline.renew(since_boot() + first)?;
        Ok(lifeline)
    }

    /// The lease lasts until this time since boot.
    pub(crate) fn renew(&self, until: Duration) -> io::Result<()> {
        self.file.write_all_at(format!("{:0DIGITS$}", until.as_millis()).as_bytes(), 0)
    }

    /// The file of the lease.
    pub(crate) fn lease(&self) -> &Path {
        &self.lease
    }

    /// What a guard gets as its standard output.
    pub(crate) fn end_for_guards(&self) -> io::Result<Stdio> {
        Ok(OwnedFd::from(self.guards_end.try_clone()?).into())
    }
}

/// Time since the host was started, also while it slept.
pub(crate) fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Waits until this file can be read or its other end is closed. False if the agent died or its lease is over before.
pub(super) fn wait_while_alive(file: &impl AsFd, agent: BorrowedFd<'_>, lease: &Path) -> bool {
    let period = Timespec::try_from(PERIOD).unwrap_or_default();
    loop {
        let mut waiting = [PollFd::new(file, PollFlags::IN), PollFd::from_borrowed_fd(agent, PollFlags::empty())];
        let _ = poll(&mut waiting, Some(&period));
        if !waiting[0].revents().is_empty() {
            return true;
        }
        if !is_alive(agent, lease) {
            return false;
        }
    }
}

/// Whether the agent lives and has its lease.
pub(super) fn is_alive(agent: BorrowedFd<'_>, lease: &Path) -> bool {
    let mut waiting = [PollFd::from_borrowed_fd(agent, PollFlags::empty())];
    let _ = poll(&mut waiting, Some(&Timespec::default()));
    // The time first: an agent that renews its lease in time has written it by then.
    let now = since_boot();
    waiting[0].revents().is_empty() && until(lease).is_some_and(|until| now <= until)
}

/// Until when the lease lasts. One that is gone is over.
fn until(lease: &Path) -> Option<Duration> {
    let mut text = String::new();
    File::open(lease).ok()?.take(DIGITS as u64).read_to_string(&mut text).ok()?;
    text.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_waits_for_its_shim_while_the_agent_lives_and_has_its_lease() {
        let folder = tempfile::tempdir().unwrap();
        let lease = folder.path().join("lease");
        let lifeline = Lifeline::new(lease.clone(), Duration::from_secs(60)).unwrap();
        let guards_end = lifeline.guards_end.try_clone().unwrap();
        let (shim, shims_end) = io::pipe().unwrap();
        let waits = || wait_while_alive(&shim, guards_end.as_fd(), &lease);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(waits);
            std::thread::sleep(Duration::from_millis(100));
            assert!(!waiting.is_finished());
            lifeline.renew(since_boot()).unwrap();
            assert!(!waiting.join().unwrap(), "the lease has expired");
        });
        lifeline.renew(since_boot() + Duration::from_secs(60)).unwrap();
        drop(lifeline);
        assert!(!waits(), "the agent is gone");
        drop(shims_end);
        assert!(waits(), "the shim has ended");
    }
}
