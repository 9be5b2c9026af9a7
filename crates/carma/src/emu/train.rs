//! `carma emu train`: this process as a training job.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::exit;

use anyhow::{Result, anyhow, bail};
use carma_core::{MiB, Seconds};
use carma_emu::Machine;
use carma_emu::cuda::CudaError;
use carma_emu::train::{Ended, Job, TrainError, traceback};
use carma_sim::Workload;
use clap::Args;
use signal_hook::consts::SIGPIPE;

use super::{memory, stop_signal};
use crate::catalogue::{CatalogueArguments, find};
use crate::trace::span;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma emu train --workload resnet50_imagenet_bs64 --seconds 10m")]
pub(super) struct Arguments {
    /// The workload; `carma catalogue list` lists them
    #[arg(long, value_name = "NAME")]
    workload: String,
    /// Number of epochs [default: that of the workload]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000), allow_negative_numbers = true)]
    epochs: Option<u32>,
    /// Run time alone, on the GPU where the workload was measured: seconds, or 30m, 12h [default: that of the workload]
    #[arg(long, value_name = "TIME", value_parser = some_time, allow_hyphen_values = true)]
    seconds: Option<Seconds>,
    /// Peak memory on each GPU, such as 12GiB; a bare number is MiB [default: that of the workload]
    #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
    memory: Option<u64>,
    /// Save the progress in this file, and resume from it if it exists
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Seed of the start-up time [default: that of the checkpoint, or random]
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<u64>,
    #[command(flatten)]
    catalogue: CatalogueArguments,
}

fn some_time(text: &str) -> Result<Seconds, String> {
    span(text).and_then(|span| if span > Seconds::ZERO { Ok(span) } else { Err("give more than 0".to_owned()) })
}

impl Arguments {
    fn workload(&self) -> Result<Workload> {
        let catalogue = self.catalogue.load()?;
        let known = find(&catalogue, &self.workload).map_err(|error| anyhow!("{error} (`carma catalogue list` has all)"))?;
        let mut workload = known.clone();
        if let Some(epochs) = self.epochs {
            let epoch = workload.seconds.get() / f64::from(workload.epochs.unwrap_or(1));
            (workload.seconds, workload.epochs) = (Seconds::new(epoch * f64::from(epochs))?, Some(epochs));
        }
        workload.seconds = self.seconds.unwrap_or(workload.seconds);
        if let Some(memory) = self.memory {
            workload.ranks.iter_mut().for_each(|rank| rank.peak = MiB(memory >> 20));
        }
        Ok(workload)
    }
}

/// Trains, and exits as a script would.
pub(super) fn run(arguments: &Arguments, machine: &Machine, output: &mut impl Write) -> Result<()> {
    let workload = arguments.workload()?;
    let stop = stop_signal()?;
    let job = Job { workload: &workload, seed: arguments.seed, checkpoint: arguments.checkpoint.as_deref() };
    match job.run(machine, &stop, output) {
        Ok(Ended::Finished) => Ok(()),
        Ok(Ended::Stopped(signal)) => exit(128 + i32::from(signal)),
        Err(TrainError::Cuda(CudaError::Machine(error))) => Err(error.into()),
        Err(TrainError::Cuda(error)) => {
            // Stderr may be closed.
            let _ = writeln!(io::stderr(), "{}", traceback(&error));
            exit(1)
        }
        // A closed pipe ends the training early, so unlike for other commands this is a failure.
        Err(TrainError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => exit(128 + SIGPIPE),
        Err(TrainError::Output(error)) => bail!("cannot tell how far it is: {error}"),
        Err(error @ TrainError::Checkpoint(_)) => Err(error.into()),
    }
}
