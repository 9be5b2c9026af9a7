//! `carma emu occupy`: this process, or one in the background, as an unmanaged process.

use std::env;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use carma_core::{Fraction, MiB, Seconds};
use carma_emu::Machine;
use carma_emu::cuda::{CudaError, Program, Rank};
use carma_emu::fault::find_gpu;
use carma_sim::RankProfile;
use clap::Args;

use super::{memory, stop_signal};
use crate::trace::span;

const POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma emu occupy --gpu 0 --memory 8GiB --smact 0.5 --for 10m")]
pub(super) struct Arguments {
    /// The GPU: its number in PCI order, or its UUID
    #[arg(long)]
    gpu: String,
    /// Memory to hold, such as 8GiB; a bare number is MiB
    #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
    memory: u64,
    /// SM activity and GPU utilisation when alone, from 0 to 1; SM occupancy is half of it
    #[arg(long, default_value = "0", value_parser = fraction, allow_negative_numbers = true)]
    smact: Fraction,
    /// Duration in emulated time: 60s, 5m, 2h [default: until it is stopped]
    #[arg(long = "for", value_name = "TIME", value_parser = span, allow_hyphen_values = true)]
    span: Option<Seconds>,
}

fn fraction(text: &str) -> Result<Fraction, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    Fraction::new(number).map_err(|error| error.to_string())
}

/// Holds the memory until it is time.
pub(super) fn run(arguments: &Arguments, machine: &Machine) -> Result<()> {
    let Arguments { gpu, memory, smact, span } = arguments;
    let stop = stop_signal()?;
    let place = machine.with(|state| {
        let gpu = find_gpu(state, gpu)?;
        let place = state.places().into_iter().find(|place| place.gpu == gpu);
        place.with_context(|| format!("GPU {gpu} is partitioned into instances, and there is none to run on"))
    })??;
    let smocc = Fraction::clamped(smact.get() / 2.0);
    let profile = RankProfile { peak: MiB(memory >> 20), smact: *smact, smocc, drama: Fraction::ZERO, utilisation: *smact, power: None };
    let program = Program::attach(machine, &[place], &[Rank { profile: &profile, workload: None }], None)?;
    program.hold(0, *memory).map_err(|error| match error {
        // The error names the GPU by the number that the user chose.
        CudaError::OutOfMemory { wanted, total, free, held, processes, .. } => {
            CudaError::OutOfMemory { ordinal: place.gpu, wanted, total, free, held, processes }
        }
        error => error,
    })?;
    program.run(*smact > Fraction::ZERO)?;
    let end = span.map(|span| machine.clock().map(|(now, _)| now + span.get())).transpose()?;
    while stop.load(Ordering::Relaxed) == 0 && end.map_or(Ok(true), |end| machine.clock().map(|(now, _)| now < end))? {
        program.held(0)?;
        sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Starts such a process in the background, and returns its pid once it holds its memory.
pub(super) fn start_in_background(arguments: &Arguments, machine: &Machine) -> Result<u32> {
    let Arguments { gpu, memory, smact, span } = arguments;
    let mut command = Command::new(env::current_exe().context("cannot find this program")?);
    command.args(["emu", "occupy", "--gpu", gpu]).arg("--folder").arg(machine.folder());
    command.args(["--memory", &format!("{}KiB", memory >> 10), "--smact", &smact.get().to_string()]);
    command.args(span.map(|span| format!("--for={}", span.get())));
    // Its own process group, so that a terminal's signals do not reach it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start a process")?;
    while !holds(machine, child.id(), memory >> 10 << 10)? {
        match child.try_wait()? {
            Some(status) if !status.success() => bail!("the process ended at once: {}", error_output(&mut child)),
            // It has already ended.
            Some(_) => break,
            None => sleep(POLL_INTERVAL),
        }
    }
    Ok(child.id())
}

fn holds(machine: &Machine, pid: u32, memory: u64) -> Result<bool> {
    Ok(machine.with(|state| state.contexts().iter().any(|context| context.pid == pid && context.bytes >= memory))?)
}

fn error_output(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = &mut child.stderr {
        let _ = errors.read_to_string(&mut text);
    }
    text.trim_end().trim_start_matches("carma: ").to_owned()
}
