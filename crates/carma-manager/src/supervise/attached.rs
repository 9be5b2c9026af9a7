//! Whoever is attached to a job's terminal, as the shim sees them: they may be slow, gone, or talk nonsense, and the job goes on.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use super::scrollback::{KEPT, Scrollback};
use crate::terminal::{Decoder, Frame};

/// How long the job is held back for one who does not read.
const STALLED: Duration = Duration::from_secs(2);

/// One who is attached.
pub(super) struct Attached {
    stream: UnixStream,
    arrived: Decoder,
    /// Up to where they have been sent what was printed.
    place: u64,
    outgoing: Vec<u8>,
    /// When they last took something.
    took: Instant,
}

impl Attached {
    /// One who has just come.
    pub(super) fn new(stream: UnixStream, scrollback: &Scrollback, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream, arrived: Decoder::default(), place: scrollback.beginning(), outgoing: Vec::new(), took: now })
    }

    /// Whether there is something for them.
    pub(super) fn is_behind(&self, scrollback: &Scrollback) -> bool {
        !self.outgoing.is_empty() || self.place < scrollback.end()
    }

    /// Until when the job had better not print more, so that they miss nothing. One who reads nothing for a while misses what is forgotten meanwhile.
    pub(super) fn holds_back(&self, scrollback: &Scrollback, now: Instant) -> Option<Instant> {
        let until = self.took + STALLED;
        (scrollback.end().saturating_sub(self.place) > KEPT as u64 / 2 && now < until).then_some(until)
    }

    /// What they have said since; an error when they have left.
    pub(super) fn hear(&mut self, mut hear: impl FnMut(Frame)) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.arrived.take(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        while let Some(frame) = self.arrived.next_frame().map_err(io::Error::other)? {
            hear(frame);
        }
        Ok(())
    }

    /// Sends what they take at once.
    pub(super) fn send(&mut self, scrollback: &Scrollback, now: Instant) -> io::Result<()> {
        loop {
            if self.outgoing.is_empty() {
                let (printed, place) = scrollback.after(self.place);
                Frame::encode_data(printed, &mut self.outgoing);
                self.place = place;
            }
            if self.outgoing.is_empty() {
                return Ok(());
            }
            match send(&self.stream, &self.outgoing, SendFlags::NOSIGNAL) {
                Ok(length) => {
                    self.outgoing.drain(..length);
                    self.took = now;
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends what was printed up to now and a last word, and waits for a slow reader no longer than that.
    pub(super) fn dismiss(mut self, scrollback: &Scrollback, last: &Frame, until: Instant) {
        let mut said = false;
        loop {
            let now = Instant::now();
            if self.send(scrollback, now).is_err() || (said && self.outgoing.is_empty()) {
                return;
            }
            if !said && !self.is_behind(scrollback) {
                said = true;
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

impl AsFd for Attached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
