//! Processes of a supervisor with the rights of the job's user.
//!
//! Files that the user controls are used only by such processes: one that blocks delays nothing else, and quotas and reserved blocks of the disk hold.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::exit;

use nix::sys::signal::SigSet;
use rustix::process::Pid;

use super::child::{JOB_OOM_SCORE, prefer_as_victim, set_umask};
use super::fork::{Fork, close_files_except, split};
use crate::attempt::Order;
use crate::credentials::Credentials;

/// Forks a process with the rights and the umask of the job's user, and with these files only. It does its work and ends. The caller must have one
/// thread.
pub(super) fn fork_as_user(order: &Order, files: &[BorrowedFd<'_>], work: impl FnOnce() -> io::Result<()>) -> io::Result<Pid> {
    let user = order.user.as_ref().map(Credentials::of).transpose()?;
    match split()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            // It holds no lock of the supervisor, and no end of another pipe.
            close_files_except(files);
            prefer_as_victim(JOB_OOM_SCORE);
            let entered =
                SigSet::empty().thread_set_mask().map_err(io::Error::from).and_then(|()| user.map_or(Ok(()), |user| user.assume()));
            order.job_umask().into_iter().for_each(set_umask);
            exit(i32::from(entered.and_then(|()| work()).is_err()))
        }
    }
}
