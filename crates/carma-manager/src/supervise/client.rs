//! A client attached to a job's terminal, as the shim sees it. It may be slow, gone or send garbage: the job continues.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use super::scrollback::{CAPACITY, Scrollback};
use crate::terminal::{Decoder, Frame};

/// How long the output of the job waits for a client that does not read.
const STALL_TIMEOUT: Duration = Duration::from_secs(2);

/// An attached client.
pub(super) struct Client {
    stream: UnixStream,
    decoder: Decoder,
    /// How much of the output it was sent.
    position: u64,
    outgoing: Vec<u8>,
    /// When it last read something.
    last_read: Instant,
}

impl Client {
    /// A client that has just connected.
    pub(super) fn new(stream: UnixStream, scrollback: &Scrollback, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, decoder: Decoder::default(), position: scrollback.first(), outgoing: Vec::new(), last_read: now })
    }

    /// Whether there is output for it.
    pub(super) fn has_output(&self, scrollback: &Scrollback) -> bool {
        !self.outgoing.is_empty() || self.position < scrollback.end()
    }

    /// Time until which the job's output is not read, so that the client misses nothing. A client that stalls for longer misses dropped output.
    pub(super) fn paused_until(&self, scrollback: &Scrollback, now: Instant) -> Option<Instant> {
        let until = self.last_read + STALL_TIMEOUT;
        (scrollback.end().saturating_sub(self.position) > CAPACITY as u64 / 2 && now < until).then_some(until)
    }

    /// Handles the decoded frames; an error when the client is gone.
    pub(super) fn read_frames(&mut self, mut handle: impl FnMut(Frame)) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.decoder.take(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        while let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
            handle(frame);
        }
        Ok(())
    }

    /// Sends as much as possible without blocking.
    pub(super) fn send(&mut self, scrollback: &Scrollback, now: Instant) -> io::Result<()> {
        loop {
            if self.outgoing.is_empty() {
                let (printed, position) = scrollback.after(self.position);
                Frame::encode_data(printed, &mut self.outgoing);
                self.position = position;
            }
            if self.outgoing.is_empty() {
                return Ok(());
            }
            match send(&self.stream, &self.outgoing, SendFlags::NOSIGNAL) {
                Ok(length) => {
                    self.outgoing.drain(..length);
                    self.last_read = now;
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends the rest of the output and a last frame, and waits for a slow reader until this time.
    pub(super) fn close(mut self, scrollback: &Scrollback, last: &Frame, until: Instant) {
        let mut sent_last = false;
        loop {
            let now = Instant::now();
            if self.send(scrollback, now).is_err() || (sent_last && self.outgoing.is_empty()) {
                return;
            }
            if !sent_last && !self.has_output(scrollback) {
                sent_last = true;
                last.encode(&mut self.outgoing);
                continue;
            }
            let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero()) else { return };
            let left = Timespec::try_from(left).ok();
            if poll(&mut [PollFd::new(&self.stream, PollFlags::OUT)], left.as_ref()).is_err() {
                return;
            }
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
