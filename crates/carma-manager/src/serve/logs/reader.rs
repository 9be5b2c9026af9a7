//! Reads what a client wants of an attempt's logs.

use std::io;

use super::cursor::LogCursor;
use super::merged::MergedLog;
use crate::api::LogStream;
use crate::supervise::AttemptFolder;

/// One log of an attempt, or both. Positions count the bytes that were ever written.
#[derive(Debug)]
pub(super) enum LogReader {
    One(LogCursor),
    Both(Box<MergedLog>),
}

/// Calls a method of either.
macro_rules! either {
    ($self:ident.$method:ident($($argument:expr)?)) => {
        match $self {
            Self::One(log) => log.$method($($argument)?),
            Self::Both(log) => log.$method($($argument)?),
        }
    };
}

impl LogReader {
    /// At the start of the logs of an attempt with this size limit, if known.
    pub(super) fn new(folder: &AttemptFolder, stream: LogStream, limit: Option<u64>) -> Self {
        match stream {
            LogStream::Stdout => Self::One(LogCursor::new(folder.output(), limit)),
            LogStream::Stderr => Self::One(LogCursor::new(folder.errors(), limit)),
            LogStream::Both => Self::Both(Box::new(MergedLog::new(folder, limit))),
        }
    }

    /// Goes to the last lines.
    pub(super) fn seek_last_lines(&mut self, lines: u32) -> io::Result<()> {
        either!(self.seek_last_lines(lines))
    }

    /// The number of bytes written so far.
    pub(super) fn end(&mut self) -> io::Result<u64> {
        either!(self.end())
    }

    /// The position.
    pub(super) fn at(&self) -> u64 {
        either!(self.at())
    }

    /// The next piece; empty if there is none yet.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        either!(self.read())
    }
}
