//! The one message of the launch server's socket: the folder of an attempt, and two open files.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::net::{recvmsg, sendmsg};

/// The longest path that the kernel takes.
const LONGEST_PATH: usize = 4096;

/// A request for supervisors.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) folder: PathBuf,
    /// The locked file of the folder.
    pub(super) lock: File,
    /// Where the answer goes.
    pub(super) answer: PipeWriter,
}

/// Sends a request. An error: it did not arrive.
pub(super) fn send(socket: &impl AsFd, folder: &Path, lock: &File, answer: &PipeWriter) -> io::Result<()> {
    let path = folder.as_os_str().as_bytes();
    if path.len() > LONGEST_PATH {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    let files = [lock.as_fd(), answer.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(path)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a request. One that lost its files on the way is left out; none: the manager has closed the socket.
pub(super) fn receive(socket: &impl AsFd) -> io::Result<Option<Request>> {
    loop {
        let mut path = [0; LONGEST_PATH];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let length = match recvmsg(socket, &mut [IoSliceMut::new(&mut path)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => received.bytes,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let files = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files: Vec<OwnedFd> = files.flatten().collect();
        if length == 0 {
            return Ok(None);
        }
        if let Ok([lock, answer]) = <[OwnedFd; 2]>::try_from(files) {
            let folder = PathBuf::from(OsStr::from_bytes(&path[..length]));
            return Ok(Some(Request { folder, lock: lock.into(), answer: answer.into() }));
        }
    }
}
