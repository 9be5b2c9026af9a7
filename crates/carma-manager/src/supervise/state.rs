//! The state of an attempt, read from its folder.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use carma_core::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::cgroup::Cgroup;
use super::folder::{AttemptFolder, FolderError, ProcessIdentity, Supervisor};
use super::processes::descendants;
use super::shim::{CHECKPOINT, KILL, TERMINATE};
use crate::attempt::Ended;

/// The state of an attempt.
#[derive(Debug)]
pub enum AttemptState {
    /// Its supervisors are starting.
    Starting,
    /// It is supervised.
    Running(Supervised),
    /// It ended, and no process of it runs.
    Ended(Ended),
    /// It never ran, and no supervisor is starting.
    NeverStarted,
    /// Its supervisors died: how it ended is unknown. Its leftovers have been killed.
    Lost,
}

/// Supervisors release their lock when they end. A lock that is still held after this many tries belongs to another process.
const MAX_TRIES: u32 = 100_000;

/// Reads the state of the attempt in a folder.
pub fn find(folder: &AttemptFolder) -> Result<AttemptState, FolderError> {
    for _ in 0..MAX_TRIES {
        if let Some(ended) = folder.ended()? {
            return Ok(AttemptState::Ended(ended));
        }
        if !is_locked(folder)? {
            // The exit may have been written in between.
            return match (folder.ended()?, folder.supervisor()?) {
                (Some(ended), _) => Ok(AttemptState::Ended(ended)),
                // A supervisor records itself before it runs anything.
                (None, None) => Ok(AttemptState::NeverStarted),
                (None, Some(supervisor)) => Ok(lost(&supervisor)),
            };
        }
        let Some(supervisor) = folder.supervisor()? else { return Ok(AttemptState::Starting) };
        match Supervised::find(folder, &supervisor) {
            Ok(Some(supervised)) => return Ok(AttemptState::Running(supervised)),
            // They have just ended, and release the lock.
            Ok(None) => std::thread::yield_now(),
            Err(source) => return Err(FolderError::Refused { path: folder.path().to_owned(), source }),
        }
    }
    // Another process holds the lock.
    Err(FolderError::Refused { path: folder.lock_file(), source: ErrorKind::WouldBlock.into() })
}

/// Kills the leftovers of two supervisors that were killed at once.
fn lost(supervisor: &Supervisor) -> AttemptState {
    if let Some(cgroup) = supervisor.cgroup() {
        cgroup.end();
    }
    AttemptState::Lost
}

pub(super) fn is_locked(folder: &AttemptFolder) -> Result<bool, FolderError> {
    let path = folder.lock_file();
    // Shared, so that two readers at the same time do not see each other.
    let refused = match File::open(&path).map(|file| file.try_lock_shared()) {
        Ok(Ok(())) => return Ok(false),
        Ok(Err(TryLockError::WouldBlock)) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Ok(Err(TryLockError::Error(source))) | Err(source) => source,
    };
    Err(FolderError::Refused { path, source: refused })
}

/// A supervised attempt, held by pidfds, which never refer to another process.
#[derive(Debug, Clone)]
pub struct Supervised {
    folder: AttemptFolder,
    guard: Option<Arc<OwnedFd>>,
    shim: Option<(i32, Arc<OwnedFd>)>,
    recorded: Supervisor,
}

impl Supervised {
    fn find(folder: &AttemptFolder, supervisor: &Supervisor) -> io::Result<Option<Self>> {
        let guard = supervisor.guard.map(handle).transpose()?.flatten();
        let shim = supervisor.shim.map(|shim| Ok::<_, io::Error>(handle(shim)?.map(|handle| (shim.pid, handle)))).transpose()?.flatten();
        let someone = guard.is_some() || shim.is_some();
        Ok(someone.then(|| Self { folder: folder.clone(), guard, shim, recorded: supervisor.clone() }))
    }

    /// Its folder.
    pub fn folder(&self) -> &AttemptFolder {
        &self.folder
    }

    /// Sends a signal to the attempt. Without a shim, it is already being killed.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some((_, shim)) = &self.shim else { return Ok(()) };
        let signal = match signal {
            Signal::Checkpoint => CHECKPOINT,
            Signal::Terminate => TERMINATE,
            Signal::Kill => KILL,
        };
        let signal = rustix::process::Signal::from_named_raw(signal as i32).ok_or(ErrorKind::InvalidInput)?;
        match pidfd_send_signal(shim, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }

    /// The pids of its processes, without those of a container.
    pub fn processes(&self) -> Vec<i32> {
        let members = self.recorded.cgroup().as_ref().map(Cgroup::members).unwrap_or_default();
        if members.is_empty() { self.shim().map(descendants).unwrap_or_default() } else { members }
    }

    /// Becomes readable when it has ended or is lost, or must be checked again.
    pub(super) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.guard.as_ref().or(self.shim.as_ref().map(|(_, shim)| shim)).map(AsFd::as_fd)
    }

    /// Waits until it has ended, must be checked again, or the time is up.
    pub(crate) fn wait(&self, limit: Duration) {
        if let (Some(end), Ok(limit)) = (self.end(), Timespec::try_from(limit)) {
            let _ = poll(&mut [PollFd::from_borrowed_fd(end, PollFlags::IN)], Some(&limit));
        }
    }

    /// Its start time, in seconds since boot; unset if its shim is gone.
    pub fn started_at(&self) -> Option<f64> {
        /// The kernel shows hundredths of a second on every architecture.
        const TICKS: f64 = 100.0;
        Some(carma_gpu::process_started(self.shim()?.try_into().ok()?)? as f64 / TICKS)
    }

    pub(super) fn shim(&self) -> Option<i32> {
        self.shim.as_ref().map(|(pid, _)| *pid)
    }

    /// Its control group.
    pub(crate) fn cgroup(&self) -> Option<Cgroup> {
        self.recorded.cgroup()
    }

    /// The name of its control group.
    pub(super) fn cgroup_name(&self) -> Option<&str> {
        self.recorded.cgroup_name()
    }
}

/// A pidfd of a process, if it is still the same one.
fn handle(process: ProcessIdentity) -> io::Result<Option<Arc<OwnedFd>>> {
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        // Without a free descriptor, whether it lives is unknown.
        handle => handle?,
    };
    // Checked after the pidfd is open: before, the pid could be reused in between.
    Ok(process.is_alive().then(|| Arc::new(handle)))
}
