//! Copies of a job's output in files that the user chose (`--output`). A process with the user's rights writes each of them.
//!
//! ```text
//!  job ── pipe ──► shim ── pipe ──► writer ──► the user's file
//!                       ◄─ status ──┘  opened, failed, done
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;

use super::fork::is_ready;
use super::fork_as_user::fork_as_user;
use crate::attempt::Order;

/// A file that takes nothing for this long, such as a pipe without a reader or a file on a dead server, gets no more output.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// The copies of a job's two streams. Both may go to one file.
#[derive(Default)]
pub(super) struct OutputCopies {
    copies: Vec<OutputCopy>,
    of_streams: [Option<usize>; 2],
}

impl OutputCopies {
    /// Starts a writer for each file.
    pub(super) fn start(order: &Order) -> io::Result<Self> {
        let mut started = Self::default();
        for (stream, path) in [&order.output, &order.error].into_iter().enumerate() {
            let Some(path) = path else { continue };
            let same = started.copies.iter().position(|copy| copy.path == *path);
            if same.is_none() {
                started.copies.push(OutputCopy::start(order, path)?);
            }
            started.of_streams[stream] = same.or(Some(started.copies.len() - 1));
        }
        Ok(started)
    }

    /// The writers.
    pub(super) fn processes(&self) -> Vec<Pid> {
        self.copies.iter().map(|copy| copy.writer).collect()
    }

    /// Waits until all files are open. The error names the one that is not.
    pub(super) fn wait_until_open(&mut self) -> Result<(), String> {
        let mut copies = self.copies.iter_mut();
        copies.try_for_each(|copy| copy.next_status().map_err(|error| format!("cannot write to {}: {error}", copy.path.display())))
    }

    /// Adds output of a stream.
    pub(super) fn write(&mut self, stream: usize, bytes: &[u8], now: Instant) {
        let copy = self.of_streams.get(stream).copied().flatten().and_then(|copy| self.copies.get_mut(copy));
        if let Some(copy) = copy.filter(|copy| copy.pipe.is_some()) {
            copy.pending.extend_from_slice(bytes);
            copy.flush(now);
        }
    }

    /// Sends what waits for a writer.
    pub(super) fn flush(&mut self, now: Instant) {
        self.copies.iter_mut().for_each(|copy| copy.flush(now));
    }

    /// The pipes to poll.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.copies.iter().filter(|copy| !copy.pending.is_empty()).filter_map(|copy| Some(PollFd::new(copy.pipe.as_ref()?, PollFlags::OUT)))
    }

    /// Until when no output is read from the job, because a writer is behind.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.copies.iter().filter(|copy| !copy.pending.is_empty()).map(|copy| copy.progressed + STALL_LIMIT).min()
    }

    /// Waits until everything is written. Answers what to tell in the log of a stream.
    pub(super) fn finish(mut self) -> Vec<(usize, String)> {
        self.copies.iter_mut().for_each(OutputCopy::finish);
        let streams = self.of_streams.iter().enumerate();
        let notes = streams.filter_map(|(stream, copy)| {
            let copy = self.copies.get_mut((*copy)?)?;
            let reason = copy.failed.take()?;
            Some((stream, format!("\n[carma: the copy in {} is incomplete: {reason}]\n", copy.path.display())))
        });
        notes.collect()
    }
}

/// A copy, from the side of the shim.
struct OutputCopy {
    path: PathBuf,
    writer: Pid,
    /// To the writer; unset when no more is written.
    pipe: Option<File>,
    /// From the writer.
    status: File,
    /// Output that the pipe has no room for.
    pending: Vec<u8>,
    /// When the pipe last took something, or had nothing to take.
    progressed: Instant,
    failed: Option<io::Error>,
}

impl OutputCopy {
    fn start(order: &Order, path: &Path) -> io::Result<Self> {
        let ((output, pipe), (status, reports)) = (io::pipe()?, io::pipe()?);
        let files = [output.as_fd(), reports.as_fd()];
        let writer = fork_as_user(order, &files, || write_all(path, &output, &reports))?;
        let pipe = File::from(OwnedFd::from(pipe));
        // The writer may be behind, and the shim must not block.
        ioctl_fionbio(&pipe, true)?;
        let status = File::from(OwnedFd::from(status));
        Ok(Self { path: path.to_owned(), writer, pipe: Some(pipe), status, pending: Vec::new(), progressed: Instant::now(), failed: None })
    }

    fn flush(&mut self, now: Instant) {
        while let Some(pipe) = self.pipe.as_mut().filter(|_| !self.pending.is_empty()) {
            match pipe.write(&self.pending) {
                Ok(written) => {
                    self.pending.drain(..written);
                    self.progressed = now;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < self.progressed + STALL_LIMIT => return,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.end(stalled()),
                // The writer has ended, and has said why.
                Err(_) => {
                    let reason = self.next_status().err().unwrap_or_else(ended);
                    self.end(reason);
                }
            }
        }
        if self.pending.is_empty() {
            self.progressed = now;
        }
    }

    fn end(&mut self, reason: io::Error) {
        (self.pipe, self.failed) = (None, Some(reason));
        self.pending.clear();
    }

    fn finish(&mut self) {
        while let (Some(pipe), Some(until)) = (&self.pipe, (!self.pending.is_empty()).then_some(self.progressed + STALL_LIMIT)) {
            is_ready(pipe, PollFlags::OUT, until);
            self.flush(Instant::now());
        }
        if self.pipe.take().is_some()
            && let Err(error) = self.next_status()
        {
            self.failed = Some(error);
        }
    }

    /// Waits for the next report of the writer.
    fn next_status(&mut self) -> io::Result<()> {
        if !is_ready(&self.status, PollFlags::IN, Instant::now() + STALL_LIMIT) {
            return Err(stalled());
        }
        let mut number = [0; 4];
        self.status.read_exact(&mut number).map_err(|_| ended())?;
        match i32::from_le_bytes(number) {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number)),
        }
    }
}

fn stalled() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it accepts no data for {} s", STALL_LIMIT.as_secs()))
}

fn ended() -> io::Error {
    io::Error::other("its writer process was killed")
}

/// The work of a writer: opens the file, and appends everything to it. Reports when it is open, and when all is written or nothing more can be.
fn write_all(path: &Path, mut output: impl Read, mut reports: impl Write) -> io::Result<()> {
    let mut report = |result: &io::Result<()>| {
        let number = result.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        reports.write_all(&number.to_le_bytes())
    };
    let opened = open(path);
    report(&opened.as_ref().map(drop).map_err(|error| io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))))?;
    let written = io::copy(&mut output, &mut opened?).map(drop);
    report(&written)
}

/// Opens the file without waiting, as for the reader of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().append(true).create(true).custom_flags(flags).open(path)?;
    // The writer itself may wait.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}
