//! `carma emu fault`: fault injection.

use std::io::Write;

use anyhow::{Context, Result};
use carma_emu::Machine;
use carma_emu::fault::{self, CallAnswer, Fault, NvmlCode, ThrottleReason};
use clap::{Args, Subcommand, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};

use super::{memory, occupy};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// A GPU falls off the bus: Xid 79, and all its calls fail.
    #[command(after_help = "Example:\n  carma emu fault lost --gpu 0")]
    Lost(OneGpu),
    /// A lost GPU returns.
    #[command(after_help = "Example:\n  carma emu fault back --gpu 0")]
    Back(OneGpu),
    /// The driver reports an Xid.
    #[command(after_help = "Example:\n  carma emu fault xid --gpu 0 --code 79")]
    Xid {
        #[command(flatten)]
        gpu: OneGpu,
        /// The number of the Xid
        #[arg(long, allow_negative_numbers = true)]
        code: u64,
        /// The process at fault; it fails (Xid 13, 31, 43)
        #[arg(long, allow_negative_numbers = true)]
        pid: Option<u32>,
    },
    /// Memory errors of a GPU: corrected, or uncorrected (Xid 48; programs on the GPU fail).
    #[command(after_help = "Example:\n  carma emu fault ecc --gpu 0 --uncorrected")]
    Ecc {
        #[command(flatten)]
        gpu: OneGpu,
        /// The errors were corrected (default)
        #[arg(long, conflicts_with = "uncorrected")]
        corrected: bool,
        /// The errors were not corrected
        #[arg(long)]
        uncorrected: bool,
        /// Number of errors
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), allow_negative_numbers = true)]
        count: u64,
    },
    /// Driver calls hang until this fault is cleared.
    #[command(after_help = "Example:\n  carma emu fault hang --gpu 0")]
    Hang(Calls),
    /// Driver calls return an NVML error.
    #[command(after_help = "Example:\n  carma emu fault error --code UNKNOWN --gpu 0")]
    Error {
        /// The name of the error: NOT_SUPPORTED, UNKNOWN, ...
        #[arg(long)]
        code: NvmlCode,
        #[command(flatten)]
        calls: Calls,
    },
    /// A GPU runs at half its speed, and the driver reports the reason.
    #[command(after_help = "Example:\n  carma emu fault throttle --gpu 0 --reason power")]
    Throttle {
        #[command(flatten)]
        gpu: OneGpu,
        /// The reason
        #[arg(long, value_enum, default_value_t = Reason::Thermal)]
        reason: Reason,
    },
    /// Memory of a GPU is used by no process.
    #[command(after_help = "Example:\n  carma emu fault leak --gpu 0 --memory 4GiB")]
    Leak {
        #[command(flatten)]
        gpu: OneGpu,
        /// The size, such as 4GiB; a bare number is MiB
        #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
        memory: u64,
    },
    /// Start an unmanaged process, and print its process number.
    #[command(after_help = "Example:\n  carma emu fault foreign --gpu 0 --memory 8GiB --smact 0.5")]
    Foreign(occupy::Arguments),
    /// Kill the MPS server of a GPU.
    #[command(after_help = "Example:\n  carma emu fault mps-crash --gpu 0")]
    MpsCrash(OneGpu),
    /// Clear all faults, or those of one GPU.
    #[command(after_help = "Example:\n  carma emu fault clear")]
    Clear {
        /// The GPU: its number in PCI order, or its UUID
        #[arg(long)]
        gpu: Option<String>,
    },
    /// List the present faults.
    #[command(after_help = "Example:\n  carma emu fault list")]
    List,
}

/// Why a GPU is throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Reason {
    /// The server's power supply asks for less power
    Power,
    /// It is too hot
    Thermal,
    /// Another reason of the hardware
    Hardware,
}

#[derive(Debug, Args)]
pub(super) struct OneGpu {
    /// The GPU: its number in PCI order, or its UUID
    #[arg(long)]
    gpu: String,
}

#[derive(Debug, Args)]
pub(super) struct Calls {
    /// Only calls about this GPU: its number in PCI order, or its UUID
    #[arg(long)]
    gpu: Option<String>,
    /// Only this function, in all its versions: nvmlDeviceGetMemoryInfo
    #[arg(long, value_name = "NAME", value_parser = call_name)]
    call: Option<String>,
}

fn call_name(text: &str) -> Result<String, String> {
    let plain = text.starts_with("nvml") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then(|| text.to_owned()).ok_or_else(|| "driver calls start with nvml".to_owned())
}

/// Injects the fault and prints a confirmation.
pub(super) fn run(command: &Command, machine: &Machine, output: &mut impl Write) -> Result<()> {
    // Every user may list faults and run a foreign process.
    if !matches!(command, Command::List | Command::Foreign(_)) {
        machine.check_rights()?;
    }
    let find = |name: &str| Ok::<usize, anyhow::Error>(machine.with(|state| fault::find_gpu(state, name))??);
    let inject = |fault: Fault| {
        machine.with(|state| fault.inject(state))??;
        Ok::<String, anyhow::Error>(fault.to_string())
    };
    let calls = |Calls { gpu, call }: &Calls, answer| {
        let gpu = gpu.as_deref().map(find).transpose()?;
        inject(Fault::Call { gpu, call: call.clone(), answer })
    };
    let message = match command {
        Command::Lost(OneGpu { gpu }) => inject(Fault::Lost { gpu: find(gpu)? })?,
        Command::Back(OneGpu { gpu }) => {
            let gpu = find(gpu)?;
            machine.with(|state| fault::recover_gpu(state, gpu))?;
            format!("GPU {gpu} is available again")
        }
        Command::Xid { gpu: OneGpu { gpu }, code, pid } => inject(Fault::Xid { gpu: find(gpu)?, code: *code, pid: *pid })?,
        Command::Ecc { gpu: OneGpu { gpu }, corrected, uncorrected, count } => {
            inject(Fault::Ecc { gpu: find(gpu)?, corrected: *corrected || !uncorrected, count: *count })?
        }
        Command::Hang(which) => calls(which, CallAnswer::Hangs)?,
        Command::Error { code, calls: which } => calls(which, CallAnswer::Fails(*code))?,
        Command::Throttle { gpu: OneGpu { gpu }, reason } => {
            let reason = match reason {
                Reason::Power => ThrottleReason::Power,
                Reason::Thermal => ThrottleReason::Thermal,
                Reason::Hardware => ThrottleReason::Hardware,
            };
            inject(Fault::Throttle { gpu: find(gpu)?, reason })?
        }
        Command::Leak { gpu: OneGpu { gpu }, memory } => inject(Fault::Leak { gpu: find(gpu)?, bytes: *memory })?,
        Command::Foreign(arguments) => occupy::start_in_background(arguments, machine)?.to_string(),
        Command::MpsCrash(OneGpu { gpu }) => crash_mps_server(machine, find(gpu)?)?,
        Command::Clear { gpu } => {
            let gpu = gpu.as_deref().map(find).transpose()?;
            machine.with(|state| fault::clear(state, gpu))?;
            gpu.map_or_else(|| "all faults are cleared".to_owned(), |gpu| format!("the faults of GPU {gpu} are cleared"))
        }
        Command::List => {
            let active = machine.with(|state| Fault::active(state))?;
            active.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n")
        }
    };
    if message.is_empty() { Ok(()) } else { Ok(writeln!(output, "{message}")?) }
}

fn crash_mps_server(machine: &Machine, gpu: usize) -> Result<String> {
    let server = machine.with(|state| fault::mps_server(state, gpu))??;
    let pid = Pid::from_raw(server.cast_signed()).context("an MPS server without a process")?;
    kill_process(pid, Signal::KILL).with_context(|| format!("cannot kill process {server}"))?;
    Ok(format!("MPS server {server} of GPU {gpu} is killed"))
}
