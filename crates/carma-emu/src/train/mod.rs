//! Training-like processes: real processes that do to emulated GPUs what a workload of the catalogue does to real ones.
//!
//! ```text
//!  starting up ──► loading ──► training ──► winding down      spans as the simulator draws them, in emulated seconds
//!  (on the CPU)       │ context, most of the memory   │
//!                     └─ two more requests up to the peak
//! ```

mod attempt;
mod checkpoint;
mod progress;
mod traceback;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use traceback::{error_message, traceback};

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use carma_sim::Workload;
use thiserror::Error;

use crate::cuda::CudaError;
use crate::machine::Machine;
use attempt::{Attempt, Next};
use checkpoint::{check, read};

/// The longest sleep: signals and changes of speed take effect within this time.
const MAX_SLEEP: Duration = Duration::from_millis(100);
/// The shortest: a busy loop is avoided however fast emulated time runs.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// A training job.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Its activity, its duration alone, and its number of epochs; the default is one.
    pub workload: &'a Workload,
    /// The same seed draws the same phases; without one it is the checkpoint's, or another each time.
    pub seed: Option<u64>,
    /// The file where it saves its progress, after each epoch and when it is stopped; it resumes from there.
    pub checkpoint: Option<&'a Path>,
}

/// How a job without an error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All its training is done.
    Finished,
    /// It was stopped by the signal of this number.
    Stopped(u8),
}

/// Errors that end a job early.
#[derive(Debug, Error)]
pub enum TrainError {
    /// Its GPUs.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// Its checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Its output has no reader.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl Job<'_> {
    /// Runs the job as this process, until it ends or `stop` holds the number of a signal.
    pub fn run(&self, machine: &Machine, stop: &AtomicUsize, output: &mut impl Write) -> Result<Ended, TrainError> {
        self.checkpoint.map(check).transpose()?;
        let found = self.checkpoint.map(|file| read(file, &self.workload.name)).transpose()?.flatten();
        let (drawn, done) = found.map_or_else(|| (fastrand::u64(..), 0.0), |found| (found.seed, found.done));
        let began = machine.clock().map_err(CudaError::from)?.0;
        let mut attempt = Attempt::new(self, machine, (self.seed.unwrap_or(drawn), done), began);
        if let Some(file) = self.checkpoint.filter(|_| attempt.is_done()) {
            writeln!(output, "the checkpoint {} is complete: nothing to train", file.display())?;
            return Ok(Ended::Finished);
        }
        if done > 0.0 {
            writeln!(output, "resuming from epoch {}", attempt.epoch())?;
        }
        let ended = self.go_on(&mut attempt, machine, stop, output);
        // Even without a driver or a reader, the progress is saved.
        if matches!(ended, Err(TrainError::Cuda(CudaError::DriverGone) | TrainError::Output(_))) {
            attempt.save()?;
        }
        if matches!(ended, Ok(Ended::Finished)) {
            writeln!(output, "done after {:.0} s", machine.clock().map_err(CudaError::from)?.0 - began)?;
            output.flush()?;
        }
        ended
    }

    fn go_on(
        &self,
        attempt: &mut Attempt<'_>,
        machine: &Machine,
        stop: &AtomicUsize,
        output: &mut impl Write,
    ) -> Result<Ended, TrainError> {
        loop {
            let (now, speed) = machine.clock().map_err(CudaError::from)?;
            match stop.load(Ordering::Relaxed) {
                0 => {}
                signal => {
                    attempt.stop(now, output)?;
                    writeln!(output, "stopped by signal {signal} in epoch {}", attempt.epoch())?;
                    if let Some(file) = self.checkpoint {
                        writeln!(output, "checkpoint written to {}", file.display())?;
                    }
                    output.flush()?;
                    return Ok(Ended::Stopped(signal as u8));
                }
            }
            let next = attempt.step(now, output)?;
            output.flush()?;
            match next {
                Next::Over => return Ok(Ended::Finished),
                Next::At(due) => std::thread::sleep(real_time(due - now, speed)),
            }
        }
    }
}

/// How long to sleep for a span of emulated seconds.
fn real_time(span: f64, speed: f64) -> Duration {
    Duration::try_from_secs_f64(span / speed).unwrap_or(if span > 0.0 { MAX_SLEEP } else { MIN_SLEEP }).clamp(MIN_SLEEP, MAX_SLEEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_have_bounded_lengths() {
        let naps = [(30.0, 1000.0), (1e-9, 1.0), (-1.0, 1.0), (1.0, 1.0), (f64::INFINITY, 1.0)].map(|(span, speed)| real_time(span, speed));
        assert_eq!(naps, [Duration::from_millis(30), MIN_SLEEP, MIN_SLEEP, MAX_SLEEP, MAX_SLEEP]);
    }
}
