//! From `carma shim FOLDER` to a guard and a shim in the background.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::process::exit;

use nix::unistd::dup2_stdin;
use rustix::process::{Signal, WaitOptions, getpid, kill_process, set_child_subreaper, setsid, waitpid};
use thiserror::Error;

use super::cgroup::Cgroup;
use super::child::spare_supervisor;
use super::dispositions::reset_all;
use super::folder::{AttemptFolder, FolderError, ProcessIdentity, ReservedExit, Supervisor};
use super::fork::{Fork, close_files_except, split};
use super::lifeline::{is_alive, wait_while_alive};
use super::shim::{clean_up, log_line, signals, supervise};
use super::user_processes::UserProcesses;
use crate::attempt::Order;

/// Why no shim was started.
#[derive(Debug, Error)]
pub enum ShimError {
    /// Its folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Its folder has no order.
    #[error("{0} holds no order")]
    NoOrder(String),
    /// It runs already.
    #[error("another shim is at work there")]
    Busy,
    /// It was run before, and its shim was lost.
    #[error("this attempt was begun before, and is never begun twice")]
    Begun,
    /// The system refused.
    #[error("cannot supervise: {0}")]
    Refused(#[from] io::Error),
    /// The lease of its agent is over: the job may run elsewhere.
    #[error("the lease of its agent is over")]
    LeaseOver,
    /// It died before it could begin.
    #[error("the shim ended before it began")]
    Vanished,
}

/// Starts guard and shim for a folder, and returns in the calling process once they run independently. Does nothing if the attempt has ended. The
/// caller must have no other threads, and no open files except the first three.
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
    let order = folder.order()?.ok_or_else(|| ShimError::NoOrder(folder.path().display().to_string()))?;
    dup2_stdin(File::open("/dev/null")?).map_err(io::Error::from)?;
    signals().thread_block().map_err(io::Error::from)?;
    let (mut answer, begin) = io::pipe()?;
    if matches!(split()?, Fork::Child) {
        drop(answer);
        let outcome = guard(folder, &order, begin);
        drop(lock);
        exit(i32::from(outcome.inspect_err(|error| log_line(format_args!("{error}"))).is_err()));
    }
    drop(begin);
    answer.read_exact(&mut [0]).map_err(|_| ShimError::Vanished)
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

/// The guard: it starts the shim, and kills the processes that a dead shim has left.
fn guard(folder: &AttemptFolder, order: &Order, begin: io::PipeWriter) -> Result<(), ShimError> {
    setsid().map_err(io::Error::from)?;
    // The agent may have been stopped after it decided to start this.
    if order.lease.as_ref().is_some_and(|lease| !is_alive(io::stdout().as_fd(), lease)) {
        return Err(ShimError::LeaseOver);
    }
    inherit_orphans()?;
    spare_supervisor();
    let cgroup = match &order.group {
        Some(made) => Cgroup::at(made),
        None => Cgroup::of_attempt(order.attempt, &order.limits),
    };
    let identity = ProcessIdentity::own();
    let (mut shim_began, over) = io::pipe()?;
    // Not children of the shim, which kills all of its children when the job ends.
    let processes = UserProcesses::start(order);
    let pids = processes.as_ref().map(UserProcesses::pids).unwrap_or_default();
    let child = match split()? {
        Fork::Child => {
            drop(shim_began);
            return shim(
                folder,
                order,
                &Supervisor::new(identity, ProcessIdentity::own(), cgroup.as_ref()),
                cgroup.as_ref(),
                processes,
                begin,
                over,
            );
        }
        Fork::Parent(child) => child,
    };
    drop((begin, over, processes));
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
        clean_up(order, cgroup.as_ref());
    } else if let Some(cgroup) = cgroup {
        cgroup.end();
    }
    Ok(())
}

fn shim(
    folder: &AttemptFolder,
    order: &Order,
    supervisor: &Supervisor,
    cgroup: Option<&Cgroup>,
    processes: io::Result<UserProcesses>,
    mut begin: io::PipeWriter,
    mut over: io::PipeWriter,
) -> Result<(), ShimError> {
    inherit_orphans()?;
    let mut record = ReservedExit::new(folder)?;
    folder.write_supervisor(supervisor)?;
    // The launcher may be gone by now.
    let _ = begin.write_all(&[0]);
    drop(begin);
    supervise(folder, order, cgroup, processes, &mut record);
    // The guard may be gone by now.
    let _ = over.write_all(&[0]);
    Ok(record.sync()?)
}

fn inherit_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}
