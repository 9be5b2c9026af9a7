//! The output of a job: read continuously, and kept in a log.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::ioctl_fionbio;

use super::log::BoundedLog;

/// One of the job's two streams.
pub(super) struct Stream {
    pipe: Option<File>,
    log: BoundedLog,
}

impl Stream {
    /// Reads from this pipe; from none if the job has one stream for both.
    pub(super) fn new(pipe: Option<OwnedFd>, log: BoundedLog) -> Self {
        let pipe = pipe.map(File::from);
        // A read must not block the shim.
        let _ = pipe.as_ref().map(|pipe| ioctl_fionbio(pipe, true));
        Self { pipe, log }
    }

    /// The file to poll.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads the available output, at most a buffer; empty if there is none. It is not in the log yet.
    pub(super) fn read<'a>(&mut self, buffer: &'a mut [u8]) -> &'a [u8] {
        let Some(pipe) = &mut self.pipe else { return &[] };
        loop {
            match pipe.read(buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => return &buffer[..length],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.pipe = None,
            }
            return &[];
        }
    }

    /// The number of bytes that were ever in the log.
    pub(super) fn written(&self) -> u64 {
        self.log.written()
    }

    /// Adds to the log.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.log.write(bytes);
    }

    /// There is no more output.
    pub(super) fn finish(self) {
        self.log.finish();
    }
}
