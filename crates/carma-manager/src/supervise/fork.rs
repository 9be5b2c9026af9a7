//! Forks, and the files that a forked process keeps.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use nix::unistd::{ForkResult, close, dup2_stdin, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

/// The side of a fork.
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

#[expect(unsafe_code, reason = "a guard must be the parent of its shim, and the same program")]
pub(super) fn split() -> io::Result<Fork> {
    // SAFETY: a process that becomes a supervisor has one thread, so no lock can be held by a thread that the new process lacks.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Pid::from_raw(child.as_raw()).map(Fork::Parent).ok_or_else(|| io::ErrorKind::NotFound.into()),
        ForkResult::Child => Ok(Fork::Child),
    }
}

/// Forks a process into a control group of version 2.
pub(super) fn split_into(group: BorrowedFd<'_>) -> io::Result<Fork> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    /// The arguments of the kernel, all of them numbers.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    let exit_signal = libc::SIGCHLD.cast_unsigned().into();
    let cgroup = group.as_raw_fd().cast_unsigned().into();
    let arguments = Arguments { flags: CLONE_INTO_CGROUP, exit_signal, cgroup, ..Arguments::default() };
    match clone3((&raw const arguments).cast(), size_of::<Arguments>()) {
        0 => Ok(Fork::Child),
        pid => i32::try_from(pid).ok().and_then(Pid::from_raw).map(Fork::Parent).ok_or_else(io::Error::last_os_error),
    }
}

#[expect(unsafe_code, reason = "the C library's fork takes no control group")]
fn clone3(arguments: *const libc::c_void, size: usize) -> libc::c_long {
    // SAFETY: without a stack and shared memory it is a fork, of a process with one thread. The C library does not learn the child's number, which
    // only its signals to itself need.
    unsafe { libc::syscall(libc::SYS_clone3, arguments, size) }
}

/// Closes all files except the first three and these.
pub(super) fn close_files_except(kept: &[BorrowedFd<'_>]) {
    let kept: Vec<i32> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for file in open.into_iter().filter(|file| *file > 2 && !kept.contains(file)) {
        let _ = close(file);
    }
}

/// Replaces standard input by an empty one.
pub(super) fn close_standard_input() -> io::Result<()> {
    Ok(dup2_stdin(File::open("/dev/null")?)?)
}

/// Whether a file is ready before this time.
pub(super) fn is_ready(file: &impl AsFd, interest: PollFlags, until: Instant) -> bool {
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(file, interest)], left.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}
