//! From `carma shim FOLDER` to a guard and a shim in the background.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::process::exit;

use nix::unistd::{ForkResult, close, dup2_stdin, fork};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, setsid, wait};
use thiserror::Error;

use super::cgroup::Cgroup;
use super::child::spare_supervisor;
use super::dispositions::reset_all;
use super::folder::{AttemptFolder, FolderError, ProcessIdentity, ReservedExit, Supervisor};
use super::shim::{clean_up, log_line, signals, supervise};
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
    /// It died before it could begin.
    #[error("the shim ended before it began")]
    Vanished,
}

/// Starts guard and shim for a folder, and returns in the calling process once they run independently. Does nothing if the attempt has ended. The
/// caller must have no other threads, and no open files except the first three.
pub fn run(folder: &AttemptFolder) -> Result<(), ShimError> {
    reset_all();
    close_inherited();
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
    if let Fork::Child = split()? {
        drop(answer);
        let outcome = guard(folder, &order, begin);
        drop(lock);
        exit(i32::from(outcome.inspect_err(|error| log_line(format_args!("{error}"))).is_err()));
    }
    drop(begin);
    answer.read_exact(&mut [0]).map_err(|_| ShimError::Vanished)
}

/// Closes files that the parent left open: a supervisor lives for days, and its job could use them.
fn close_inherited() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for file in open.into_iter().filter(|file| *file > 2) {
        let _ = close(file);
    }
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
    inherit_orphans()?;
    spare_supervisor();
    let identity = ProcessIdentity::of(getpid().as_raw_nonzero().get());
    let name = identity.map(|identity| format!("{}-{}-{}", order.attempt.job.0, order.attempt.number, identity.name()));
    let cgroup = name.and_then(|name| Cgroup::create(&name, &order.limits));
    let (mut shim_began, over) = io::pipe()?;
    if let Fork::Child = split()? {
        drop(shim_began);
        return shim(folder, order, identity, cgroup.as_ref(), begin, over);
    }
    drop((begin, over));
    // Once the exit is written, nothing waits for it to be durable.
    if shim_began.read_exact(&mut [0]).is_err() {
        // The shim is the only child until it dies. Then its children become ours.
        let _ = wait(WaitOptions::empty());
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
    guard: Option<ProcessIdentity>,
    cgroup: Option<&Cgroup>,
    mut begin: io::PipeWriter,
    mut over: io::PipeWriter,
) -> Result<(), ShimError> {
    inherit_orphans()?;
    let mut record = ReservedExit::new(folder)?;
    let shim = ProcessIdentity::of(getpid().as_raw_nonzero().get());
    folder.write_supervisor(&Supervisor::new(guard, shim, cgroup))?;
    // The launcher may be gone by now.
    let _ = begin.write_all(&[0]);
    drop(begin);
    supervise(folder, order, cgroup, &mut record);
    // The guard may be gone by now.
    let _ = over.write_all(&[0]);
    Ok(record.sync()?)
}

fn inherit_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

enum Fork {
    Parent,
    Child,
}

#[expect(unsafe_code, reason = "a guard must be the parent of its shim, and the same program")]
fn split() -> io::Result<Fork> {
    // SAFETY: a process that becomes a shim has one thread, so no lock can be held by a thread that the new process lacks.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => Ok(Fork::Parent),
        ForkResult::Child => Ok(Fork::Child),
    }
}
