//! The processes that serve a shim with the rights of the job's user.

use std::io;
use std::time::Instant;

use rustix::event::PollFd;
use rustix::process::Pid;

use super::checkpoint_scan::CheckpointScan;
use super::folder::AttemptFolder;
use super::output_copy::OutputCopies;
use crate::attempt::Order;

/// The processes. They end when this is dropped in the shim.
pub(super) struct UserProcesses {
    copies: OutputCopies,
    checkpoints: Option<CheckpointScan>,
}

impl UserProcesses {
    /// Starts those that the order needs.
    pub(super) fn start(order: &Order) -> io::Result<Self> {
        Ok(Self { copies: OutputCopies::start(order)?, checkpoints: CheckpointScan::start(order)? })
    }

    /// Their pids.
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.copies.processes().into_iter().chain(self.checkpoints.as_ref().map(CheckpointScan::process)).collect()
    }

    /// Waits until the files of the user are open and the checkpoint folder is scanned. The error names the file that is not open.
    pub(super) fn wait_until_ready(&mut self, folder: &AttemptFolder) -> Result<(), String> {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.wait_for_first(folder);
        }
        self.copies.wait_until_open()
    }

    /// Copies output of a stream.
    pub(super) fn copy(&mut self, stream: usize, bytes: &[u8], now: Instant) {
        self.copies.write(stream, bytes, now);
    }

    /// The pipes to poll.
    pub(super) fn interests(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.copies.interests().chain(self.checkpoints.as_ref().and_then(CheckpointScan::interest))
    }

    /// Until when no output is read from the job, because a copy is behind.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        self.copies.paused_until()
    }

    /// Does what the pipes are ready for.
    pub(super) fn serve(&mut self, folder: &AttemptFolder, now: Instant) {
        self.copies.flush(now);
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.record(folder);
        }
    }

    /// Waits for their last work, within limits. Answers what to add to the log of a stream.
    pub(super) fn finish(self, folder: &AttemptFolder) -> Vec<(usize, String)> {
        if let Some(checkpoints) = self.checkpoints {
            checkpoints.finish(folder);
        }
        self.copies.finish()
    }
}
