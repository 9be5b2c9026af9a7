//! What a job prints: read as it comes, kept in a log, and copied to where its user wants it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::ioctl_fionbio;

use super::child::with_rights_of;
use super::log::BoundedLog;
use super::shim::say;
use crate::attempt::RunAs;

/// One of the job's two streams.
pub(super) struct Stream {
    pipe: Option<File>,
    log: BoundedLog,
    copy: Option<File>,
}

impl Stream {
    /// Reads from here; from nowhere where the job has one stream for both.
    pub(super) fn new(pipe: Option<OwnedFd>, log: BoundedLog, copy: Option<File>) -> Self {
        let pipe = pipe.map(File::from);
        // Where a read could block, the shim would be deaf.
        let _ = pipe.as_ref().map(|pipe| ioctl_fionbio(pipe, true));
        Self { pipe, log, copy }
    }

    /// What to wait for.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what there is, as much as the buffer holds. When it is nothing, there is nothing for now.
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

    /// Adds to what is kept.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.log.write(bytes);
        // The log has it all the same.
        if let Some(Err(error)) = self.copy.as_mut().map(|copy| copy.write_all(bytes)) {
            say(format_args!("the copy of the output ends here: {error}"));
            self.copy = None;
        }
    }

    /// Nothing comes any more.
    pub(super) fn finish(self) {
        self.log.finish();
    }
}

/// Opens what the user asked for, with the user's own rights. What blocks, as a pipe may, is not waited for.
pub(super) fn copy_to(path: Option<&Path>, user: Option<&RunAs>) -> Result<Option<File>, String> {
    let Some(path) = path else { return Ok(None) };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = with_rights_of(user, || File::options().append(true).create(true).custom_flags(flags).open(path));
    opened.map(Some).map_err(|error| format!("cannot write to {}: {error}", path.display()))
}
