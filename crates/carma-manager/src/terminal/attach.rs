//! The user's side of a terminal: keys go to the job, its output to the screen.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio};
use thiserror::Error;

use super::escape::Escape;
use super::frames::{Decoder, Frame, FrameError};
use super::raw::{RawTerminal, Signals};
use crate::attempt::Exit;

/// End of input at a terminal.
const CONTROL_D: &[u8] = &[4];
/// While this much waits to be sent, no more is read from the keyboard.
const WAITING: usize = 64 * 1024;

/// How an attachment ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachOutcome {
    /// The user detached, or closed the terminal. The job continues.
    Detached,
    /// A signal ended this program. The job continues.
    Signalled(i32),
    /// Another client attached. The job continues.
    TakenOver,
    /// The job ended.
    Ended(Exit),
    /// The connection was lost: the manager or the shim is gone.
    Lost,
}

/// Why an attachment failed.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The connection broke.
    #[error("the connection to the terminal failed: {0}")]
    Connection(io::Error),
    /// The other side sent an invalid frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The user's own terminal failed.
    #[error("cannot use this terminal: {0}")]
    Terminal(io::Error),
}

/// Attaches the user to the terminal at the other end of a connection until one side leaves. A keyboard that is a terminal is in raw mode, `~.` after a
/// newline detaches, and the job's terminal follows its size. Input from a pipe is passed on unchanged, and its end as Ctrl-D.
pub fn attach(connection: impl Read + Write + AsFd, keyboard: impl AsFd, screen: impl Write) -> Result<AttachOutcome, AttachError> {
    let signals = Signals::listen().map_err(AttachError::Terminal)?;
    ioctl_fionbio(&connection, true).map_err(|error| AttachError::Connection(error.into()))?;
    let terminal = RawTerminal::new(keyboard.as_fd()).map_err(AttachError::Terminal)?;
    let mut attachment =
        Attachment { connection, screen, terminal, escape: Escape::new(), arrived: Decoder::default(), outgoing: Vec::new(), typing: true };
    attachment.run(&keyboard, &signals)
}

struct Attachment<C, S> {
    connection: C,
    screen: S,
    /// The keyboard's terminal, if it is one.
    terminal: Option<RawTerminal>,
    escape: Escape,
    arrived: Decoder,
    outgoing: Vec<u8>,
    /// Whether there may be more from the keyboard.
    typing: bool,
}

impl<C: Read + Write + AsFd, S: Write> Attachment<C, S> {
    fn run(&mut self, keyboard: &impl AsFd, signals: &Signals) -> Result<AttachOutcome, AttachError> {
        self.resize();
        loop {
            // Before the first wait: the connection may have read ahead.
            if let Some(departure) = self.receive()? {
                return Ok(departure);
            }
            self.send()?;
            let sending = if self.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            let mut fds = vec![PollFd::new(&self.connection, PollFlags::IN | sending), PollFd::new(signals, PollFlags::IN)];
            if self.typing && self.outgoing.len() < WAITING {
                fds.push(PollFd::new(keyboard, PollFlags::IN));
            }
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(AttachError::Connection(error.into())),
            }
            let (signalled, typed) = (!fds[1].revents().is_empty(), fds.get(2).is_some_and(|keyboard| !keyboard.revents().is_empty()));
            if signalled {
                if let Some(signal) = signals.pending() {
                    return Ok(AttachOutcome::Signalled(signal));
                }
                self.resize();
            }
            if typed && self.read_keys(keyboard)? {
                self.send()?;
                return Ok(AttachOutcome::Detached);
            }
        }
    }

    fn resize(&mut self) {
        if let Some(size) = self.terminal.as_ref().and_then(RawTerminal::size) {
            Frame::Resize(size).encode(&mut self.outgoing);
        }
    }

    /// Shows output that has arrived. Answers how it ended, if it has.
    fn receive(&mut self) -> Result<Option<AttachOutcome>, AttachError> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let length = match self.connection.read(&mut buffer) {
                Ok(0) => return Ok(Some(AttachOutcome::Lost)),
                Ok(length) => length,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(None),
                    ErrorKind::Interrupted => continue,
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => return Ok(Some(AttachOutcome::Lost)),
                    _ => return Err(AttachError::Connection(error)),
                },
            };
            self.arrived.take(&buffer[..length]);
            while let Some(frame) = self.arrived.next_frame()? {
                match frame {
                    Frame::Data(data) => {
                        self.screen.write_all(&data).and_then(|()| self.screen.flush()).map_err(AttachError::Terminal)?;
                    }
                    Frame::TakenOver => return Ok(Some(AttachOutcome::TakenOver)),
                    Frame::Ended(exit) => return Ok(Some(AttachOutcome::Ended(exit))),
                    // Without a terminal there is no size to send.
                    Frame::Resize(_) => {}
                }
            }
        }
    }

    fn send(&mut self) -> Result<(), AttachError> {
        while !self.outgoing.is_empty() {
            match self.connection.write(&self.outgoing) {
                Ok(length) => {
                    self.outgoing.drain(..length);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    // The other side is gone: its last frames are still to be read.
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                        self.typing = false;
                        self.outgoing.clear();
                    }
                    _ => return Err(AttachError::Connection(error)),
                },
            }
        }
        // Encrypted connections buffer.
        match self.connection.flush() {
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Err(AttachError::Connection(error))
            }
            _ => Ok(()),
        }
    }

    /// Reads the keyboard. Answers whether to detach.
    fn read_keys(&mut self, keyboard: &impl AsFd) -> Result<bool, AttachError> {
        let mut buffer = [0; 16 * 1024];
        match (rustix::io::read(keyboard, &mut buffer), &self.terminal) {
            // The terminal was closed.
            (Ok(0) | Err(Errno::IO), Some(_)) => return Ok(true),
            (Ok(0), None) => {
                self.typing = false;
                Frame::encode_data(CONTROL_D, &mut self.outgoing);
            }
            (Ok(length), Some(_)) => {
                let typed = self.escape.take(&buffer[..length]);
                Frame::encode_data(&typed.bytes, &mut self.outgoing);
                return Ok(typed.detach);
            }
            (Ok(length), None) => Frame::encode_data(&buffer[..length], &mut self.outgoing),
            (Err(Errno::INTR | Errno::AGAIN), _) => {}
            (Err(error), _) => return Err(AttachError::Terminal(error.into())),
        }
        Ok(false)
    }
}
