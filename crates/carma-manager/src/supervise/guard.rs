//! From a request to a guard and a shim in the background.

use std::fs::{File, TryLockError};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::exit;
use std::time::Instant;

use rustix::event::PollFlags;
use rustix::process::{PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper, setsid, waitpid};
use thiserror::Error;

use super::cgroup::{Cgroup, Hierarchies};
use super::child::spare_supervisor;
use super::dispositions::reset_all;
use super::folder::{AttemptFolder, FolderError, ProcessIdentity, ReservedExit, Supervisor};
use super::fork::{Fork, close_files_except, close_standard_input, is_ready, split};
use super::lifeline::{is_alive, wait_while_alive};
use super::shim::{clean_up, signals, supervise};
use super::supervisor_log::{keep_log_in, log_line};
use super::user_processes::UserProcesses;
use crate::attempt::Order;

/// Why no shim was started.
#[derive(Debug, Error)]
pub enum ShimError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its folder has no order.
    #[error("{0} contains no launch order")]
    NoOrder(String),
    /// It runs already.
    #[error("another shim runs there")]
    Busy,
    /// It was run before, and its shim was lost.
    #[error("this attempt was started before, and never starts twice")]
    Begun,
    /// The system refused.
    #[error("cannot supervise: {0}")]
    Refused(#[from] io::Error),
    /// The lease of its agent is over: the job may run elsewhere.
    #[error("the lease of its agent has expired")]
    LeaseOver,
    /// It ended with this error.
    #[error("{0}")]
    Ended(String),
    /// It died before it could begin.
    #[error("the shim ended before it began")]
    Vanished,
}

/// What supervisors inherit from the process that forks them.
pub(super) struct Inherited {
    hierarchies: Hierarchies,
    /// The launch server, which ends with its manager.
    launch_server: Option<OwnedFd>,
}

impl Inherited {
    /// From this process, which is the launch server.
    pub(super) fn from_launch_server() -> io::Result<Self> {
        Ok(Self { launch_server: Some(pidfd_open(getpid(), PidfdFlags::empty())?), ..Self::from_command() })
    }

    /// From a command that forks one guard and ends.
    fn from_command() -> Self {
        Self { hierarchies: Hierarchies::own(), launch_server: None }
    }

    /// Whether the manager that started them is certainly there.
    fn has_manager(&self) -> bool {
        self.launch_server.as_ref().is_some_and(|server| !is_ready(server, PollFlags::IN, Instant::now()))
    }
}

/// Starts guard and shim for a folder without a launch server, and returns in the calling process once they run independently. Does nothing if the
/// attempt has ended. The caller must have no other threads.
pub fn run(folder: &AttemptFolder) -> Result<(), ShimError> {
    reset_all();
    // A supervisor lives for days, and its job could use files that the parent left open.
    close_files_except(&[]);
    let lock = lock(folder)?;
    if folder.ended()?.is_some() {
        return Ok(());
    }
    if folder.supervisor()?.is_some() {
        return Err(ShimError::Begun);
    }
    close_standard_input()?;
    spare_supervisor();
    let (answer, theirs) = io::pipe()?;
    if matches!(split()?, Fork::Child) {
        drop(answer);
        become_guard(folder, lock, theirs, &Inherited::from_command());
    }
    drop((lock, theirs));
    read_answer(answer)
}

/// The lock of the folder: the launcher may have passed it as standard input, already locked.
fn lock(folder: &AttemptFolder) -> Result<File, ShimError> {
    let file = File::options().write(true).create(true).truncate(false).open(folder.lock_file())?;
    let given = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let same = |file: &File| file.metadata().map(|data| (data.dev(), data.ino()));
    let file = if same(&given)? == same(&file)? { given } else { file };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ShimError::Busy),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The answer of a shim that has started. Others answer with their error.
const STARTED: u8 = 0;

/// Waits until the shim has started.
pub(super) fn read_answer(mut answer: PipeReader) -> Result<(), ShimError> {
    let mut text = [0; 4096];
    match answer.read(&mut text)? {
        0 => Err(ShimError::Vanished),
        _ if text[0] == STARTED => Ok(()),
        length => Err(ShimError::Ended(String::from_utf8_lossy(&text[..length]).into_owned())),
    }
}

/// Turns this process, which was forked for it, into the guard of an attempt.
pub(super) fn become_guard(folder: &AttemptFolder, lock: File, answer: PipeWriter, inherited: &Inherited) -> ! {
    keep_log_in(folder);
    let mut answer = Some(answer);
    let outcome = guard(folder, &mut answer, inherited);
    if let Err(error) = &outcome {
        log_line(format_args!("{error}"));
        // In one write: the reader reads once.
        let _ = answer.map(|mut answer| answer.write_all(error.to_string().as_bytes()));
    }
    drop(lock);
    exit(i32::from(outcome.is_err()))
}

/// The guard: it starts the shim, and kills the processes that a dead shim has left. The answer is taken by the process that is responsible for it.
fn guard(folder: &AttemptFolder, answer: &mut Option<PipeWriter>, inherited: &Inherited) -> Result<(), ShimError> {
    setsid().map_err(io::Error::from)?;
    signals().thread_block().map_err(io::Error::from)?;
    let order = folder.order()?.ok_or_else(|| ShimError::NoOrder(folder.path().display().to_string()))?;
    // The agent may have been stopped after it decided to start this.
    if order.lease.as_ref().is_some_and(|lease| !is_alive(io::stdout().as_fd(), lease)) {
        return Err(ShimError::LeaseOver);
    }
    inherit_orphans()?;
    let cgroup = match &order.group {
        Some(made) => Cgroup::at(made),
        None => Cgroup::of_attempt_in(&inherited.hierarchies, order.attempt, &order.limits),
    };
    let identity = ProcessIdentity::own();
    let (mut shim_began, over) = io::pipe()?;
    // Not children of the shim, which kills all of its children when the job ends.
    let processes = UserProcesses::start(&order);
    let pids = processes.as_ref().map(UserProcesses::pids).unwrap_or_default();
    let child = match split()? {
        Fork::Child => {
            drop(shim_began);
            let supervisor = Supervisor::new(identity, ProcessIdentity::own(), cgroup.as_ref());
            let record = shim(folder, &order, &supervisor, cgroup.as_ref(), processes, answer, over)?;
            // The manager makes the end durable before it acts. Without a manager, the record must last.
            return if inherited.has_manager() { Ok(()) } else { Ok(record.sync()?) };
        }
        Fork::Parent(child) => child,
    };
    drop((answer.take(), over, processes));
    // Once the exit is written, nothing waits for it to be durable.
    let may_go_on = order.lease.as_ref().is_none_or(|lease| wait_while_alive(&shim_began, io::stdout().as_fd(), lease));
    if !may_go_on {
        let _ = kill_process(child, Signal::KILL);
    }
    if shim_began.read_exact(&mut [0]).is_err() {
        // Its children become ours.
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
    // One that is done is a zombie: its pid is still its own.
    for pid in pids {
        let _ = kill_process(pid, Signal::KILL);
    }
    if folder.ended()?.is_none() {
        clean_up(&order, cgroup.as_ref());
    } else if let Some(cgroup) = cgroup {
        cgroup.end();
    }
    Ok(())
}

/// The shim, until its exit is written.
fn shim(
    folder: &AttemptFolder,
    order: &Order,
    supervisor: &Supervisor,
    cgroup: Option<&Cgroup>,
    processes: io::Result<UserProcesses>,
    answer: &mut Option<PipeWriter>,
    mut over: PipeWriter,
) -> Result<ReservedExit, ShimError> {
    inherit_orphans()?;
    let mut record = ReservedExit::new(folder)?;
    folder.write_supervisor(supervisor)?;
    // The launcher may be gone by now.
    let _ = answer.take().map(|mut answer| answer.write_all(&[STARTED]));
    supervise(folder, order, cgroup, processes, &mut record);
    // The guard may be gone by now.
    let _ = over.write_all(&[0]);
    Ok(record)
}

fn inherit_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}
