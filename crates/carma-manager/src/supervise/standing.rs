//! How an attempt stands, as anybody can find out from its folder.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use carma_core::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::cgroup::Cgroup;
use super::family::descendants;
use super::folder::{AttemptFolder, FolderError, ProcessIdentity, Supervisor};
use super::shim::{CHECKPOINT, KILL, TERMINATE};
use crate::attempt::Ended;

/// How an attempt stands.
#[derive(Debug)]
pub enum Standing {
    /// Somebody is about to supervise it.
    Starting,
    /// It is supervised.
    Running(Supervised),
    /// It ended, and nothing of it runs.
    Ended(Ended),
    /// Nothing of it ever ran, and nobody is about to run it.
    NeverBegun,
    /// Its supervisors died: nobody will ever know how it ended. What was left of it has been killed.
    Lost,
}

/// Supervisors that have ended let go of their lock with that: after so many looks it is not theirs.
const MOST_LOOKS: u32 = 100_000;

/// Finds out how the attempt of a folder stands.
pub fn find(folder: &AttemptFolder) -> Result<Standing, FolderError> {
    for _ in 0..MOST_LOOKS {
        if let Some(ended) = folder.ended()? {
            return Ok(Standing::Ended(ended));
        }
        if !is_locked(folder)? {
            // The exit may have been written between the two looks.
            return match (folder.ended()?, folder.supervisor()?) {
                (Some(ended), _) => Ok(Standing::Ended(ended)),
                // A supervisor writes down who it is before it runs anything.
                (None, None) => Ok(Standing::NeverBegun),
                (None, Some(supervisor)) => Ok(lost(&supervisor)),
            };
        }
        let Some(supervisor) = folder.supervisor()? else { return Ok(Standing::Starting) };
        match Supervised::find(folder, &supervisor) {
            Ok(Some(supervised)) => return Ok(Standing::Running(supervised)),
            // They have just ended, and the lock with them.
            Ok(None) => std::thread::yield_now(),
            Err(source) => return Err(FolderError::Refused { path: folder.path().to_owned(), source }),
        }
    }
    // Somebody else holds the lock.
    Err(FolderError::Refused { path: folder.lock_file(), source: ErrorKind::WouldBlock.into() })
}

/// What two supervisors killed at once have left is killed here.
fn lost(supervisor: &Supervisor) -> Standing {
    if let Some(cgroup) = supervisor.cgroup.as_deref().and_then(Cgroup::at) {
        cgroup.end();
    }
    Standing::Lost
}

fn is_locked(folder: &AttemptFolder) -> Result<bool, FolderError> {
    let path = folder.lock_file();
    // Shared, so that two who look at the same time do not see each other.
    let refused = match File::open(&path).map(|file| file.try_lock_shared()) {
        Ok(Ok(())) => return Ok(false),
        Ok(Err(TryLockError::WouldBlock)) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Ok(Err(TryLockError::Error(source))) | Err(source) => source,
    };
    Err(FolderError::Refused { path, source: refused })
}

/// A supervised attempt, held by handles that never mean another process.
#[derive(Debug, Clone)]
pub struct Supervised {
    folder: AttemptFolder,
    guard: Option<Arc<OwnedFd>>,
    shim: Option<(i32, Arc<OwnedFd>)>,
    cgroup: Option<Cgroup>,
}

impl Supervised {
    fn find(folder: &AttemptFolder, supervisor: &Supervisor) -> io::Result<Option<Self>> {
        let guard = supervisor.guard.map(handle).transpose()?.flatten();
        let shim = supervisor.shim.map(|shim| Ok::<_, io::Error>(handle(shim)?.map(|handle| (shim.pid, handle)))).transpose()?.flatten();
        let someone = guard.is_some() || shim.is_some();
        Ok(someone.then(|| Self { folder: folder.clone(), guard, shim, cgroup: supervisor.cgroup.as_deref().and_then(Cgroup::at) }))
    }

    /// Where it is kept.
    pub fn folder(&self) -> &AttemptFolder {
        &self.folder
    }

    /// Tells the attempt something. One whose shim is gone is being killed already.
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

    /// The numbers of its processes, those of a container left out.
    pub fn processes(&self) -> Vec<i32> {
        let members = self.cgroup.as_ref().map(Cgroup::members).unwrap_or_default();
        if members.is_empty() { self.shim().map(descendants).unwrap_or_default() } else { members }
    }

    /// What becomes readable when it has ended or is lost, or when it has to be looked for again.
    pub(super) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.guard.as_ref().or(self.shim.as_ref().map(|(_, shim)| shim)).map(AsFd::as_fd)
    }

    /// Waits until it is over, or has to be looked for again, or the time is up.
    pub(crate) fn wait(&self, limit: Duration) {
        if let (Some(end), Ok(limit)) = (self.end(), Timespec::try_from(limit)) {
            let _ = poll(&mut [PollFd::from_borrowed_fd(end, PollFlags::IN)], Some(&limit));
        }
    }

    /// When it was begun, in seconds since the system's start; unset where its shim is gone.
    pub fn begun(&self) -> Option<f64> {
        /// The kernel counts in hundredths for everybody.
        const TICKS: f64 = 100.0;
        Some(carma_gpu::process_started(self.shim()?.try_into().ok()?)? as f64 / TICKS)
    }

    pub(super) fn shim(&self) -> Option<i32> {
        self.shim.as_ref().map(|(pid, _)| *pid)
    }

    pub(super) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }
}

/// The kernel's handle of a process, if it is still the same one.
fn handle(process: ProcessIdentity) -> io::Result<Option<Arc<OwnedFd>>> {
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        // With no handle left to be had, nobody knows whether it lives.
        handle => handle?,
    };
    // Looked at after the handle was taken: before, the number could change hands in between.
    Ok((ProcessIdentity::of(process.pid) == Some(process)).then(|| Arc::new(handle)))
}
