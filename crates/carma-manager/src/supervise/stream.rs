//! The output of a job: read continuously, kept in a log, and copied to the user's file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::ioctl_fionbio;

use super::child::{as_user, with_umask};
use super::log::BoundedLog;
use super::shim::log_line;
use crate::attempt::Order;

/// One of the job's two streams.
pub(super) struct Stream {
    pipe: Option<File>,
    log: BoundedLog,
    copy: Option<File>,
}

impl Stream {
    /// Reads from this pipe; from none if the job has one stream for both.
    pub(super) fn new(pipe: Option<OwnedFd>, log: BoundedLog, copy: Option<File>) -> Self {
        let pipe = pipe.map(File::from);
        // A read must not block the shim.
        let _ = pipe.as_ref().map(|pipe| ioctl_fionbio(pipe, true));
        Self { pipe, log, copy }
    }

    /// The file to poll.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads the available output, at most a buffer; empty if there is none.
    pub(super) fn take<'a>(&mut self, buffer: &'a mut [u8]) -> &'a [u8] {
        let Some(pipe) = &mut self.pipe else { return &[] };
        loop {
            match pipe.read(buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    self.write(&buffer[..length]);
                    return &buffer[..length];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.pipe = None,
            }
            return &[];
        }
    }

    /// Adds to the log.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.log.write(bytes);
        // The log still has it.
        if let Some(Err(error)) = self.copy.as_mut().map(|copy| copy.write_all(bytes)) {
            log_line(format_args!("the copy of the output ends here: {error}"));
            self.copy = None;
        }
    }

    /// There is no more output.
    pub(super) fn finish(self) {
        self.log.finish();
    }
}

/// Opens the file that the user requested, with the user's rights and umask and without blocking, as a pipe might.
pub(super) fn copy_to(path: Option<&Path>, order: &Order) -> Result<Option<File>, String> {
    let Some(path) = path else { return Ok(None) };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let open = || File::options().append(true).create(true).custom_flags(flags).open(path);
    let opened = with_umask(order.job_umask(), || as_user(order.user.as_ref(), open));
    opened.map(Some).map_err(|error| format!("cannot write to {}: {error}", path.display()))
}
