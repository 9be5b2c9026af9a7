//! `carma emu`: emulated GPUs made and removed, used, and harmed.

// Help is read in a terminal, without any markup.
#![expect(clippy::doc_markdown, reason = "backticks would be shown")]

mod environment;
mod fault;
mod machine;
mod occupy;
mod train;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use carma_emu::Machine;
use clap::{Args, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::units::bytes;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of the emulated GPUs [default: $CARMA_EMU, else
    /// /dev/shm/carma-emu-UID]
    #[arg(long, global = true, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a server with emulated GPUs.
    Up(machine::UpArguments),
    /// Remove the emulated server.
    ///
    /// Its MPS daemons are stopped. The command refuses while processes use the GPUs.
    Down(machine::DownArguments),
    /// Show the emulated server.
    #[command(after_help = "Example:\n  carma emu show")]
    Show,
    /// List the kinds of GPUs that can be emulated.
    #[command(after_help = "Example:\n  carma emu kinds")]
    Kinds,
    /// Print the shell variables for using the emulated GPUs: eval "$(carma emu env)"
    Env(environment::EnvArguments),
    /// Run a command on the emulated GPUs.
    Run(environment::RunArguments),
    /// Act as a training process: allocate memory, run kernels, print progress, checkpoint.
    ///
    /// The process sees the GPUs of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER. It needs the time and memory of its workload, and other
    /// processes on the GPU slow it down. A step is a tenth of a second of training alone. The printed loss is made up. SIGTERM makes it
    /// write its checkpoint and exit with 143, SIGINT with 130. A CUDA error ends it with the message of PyTorch and exit code 1.
    Train(train::Arguments),
    /// Act as an unmanaged process: hold memory of a GPU, and keep it busy.
    Occupy(occupy::Arguments),
    /// Serve counters over HTTP in the format of dcgm-exporter.
    #[command(after_help = "Example:\n  carma emu exporter --listen 127.0.0.1:9400")]
    Exporter {
        /// The address to listen on.
        #[arg(long, default_value = "127.0.0.1:9400")]
        listen: SocketAddr,
    },
    /// Inject a fault.
    #[command(subcommand)]
    Fault(fault::Command),
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let folder = arguments.folder.clone().unwrap_or_else(Machine::default_folder);
    // Readers of the path may be in another folder.
    let folder = std::path::absolute(&folder).with_context(|| format!("{} is not a folder", folder.display()))?;
    let open = || Machine::open(&folder);
    match &arguments.command {
        Command::Up(up) => machine::up(up, &folder),
        Command::Down(arguments) => machine::down(arguments, &folder),
        Command::Show => machine::show(&open()?, output),
        Command::Kinds => machine::kinds(output),
        Command::Env(arguments) => environment::print(arguments, &folder, output),
        Command::Run(arguments) => environment::run(arguments, &open()?),
        Command::Train(arguments) => train::run(arguments, &open()?, output),
        Command::Occupy(arguments) => occupy::run(arguments, &open()?),
        Command::Exporter { listen } => {
            let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
            eprintln!("carma: http://{}/metrics", listener.local_addr()?);
            Ok(carma_emu::dcgm::serve(&open()?, &listener)?)
        }
        Command::Fault(command) => fault::run(command, &open()?, output),
    }
}

/// Memory as people write it; a bare number is MiB.
fn memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("give more than 0, in MiB or with a unit".to_owned()) })
}

/// Holds the number of the stop signal after one arrives.
fn stop_signal() -> Result<Arc<AtomicUsize>> {
    let stop = Arc::new(AtomicUsize::new(0));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register_usize(signal, Arc::clone(&stop), signal.unsigned_abs() as usize).context("cannot handle signals")?;
    }
    Ok(stop)
}
