//! Signals that a parent ignores: a process inherits that, and passes it on to everything it starts.

use std::io;

/// The highest number of a signal on Linux.
const LAST: libc::c_int = 64;

/// Gives all signals their default effect. A manager that was started by `nohup`, or by a shell that ignores signals, must not pass that on to jobs.
/// SIGPIPE stays ignored, as in every Rust program; std resets it for children.
pub(super) fn reset_all() {
    for signal in (1..=LAST).filter(|signal| *signal != libc::SIGPIPE) {
        // KILL, STOP and the two signals of the C library cannot be changed.
        let _ = reset(signal);
    }
}

/// Gives SIGCHLD its default effect: where it is ignored, the exits of children are lost.
pub fn keep_exits_of_children() -> io::Result<()> {
    reset(libc::SIGCHLD)
}

/// Lets the kernel reap children when they end.
pub(super) fn ignore_exits_of_children() -> io::Result<()> {
    set(libc::SIGCHLD, libc::SIG_IGN)
}

fn reset(signal: libc::c_int) -> io::Result<()> {
    set(signal, libc::SIG_DFL)
}

#[expect(unsafe_code, reason = "signals of the C library")]
fn set(signal: libc::c_int, effect: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: neither effect runs code of ours.
    if unsafe { libc::signal(signal, effect) } == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}
