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
    /// A GPU falls off the bus: Xid 79, and whatever asks or uses it fails.
    Lost(OneGpu),
    /// A lost GPU is there again.
    Back(OneGpu),
    /// The driver reports an Xid.
    Xid {
        #[command(flatten)]
        gpu: OneGpu,
        /// Its number
        #[arg(long, allow_negative_numbers = true)]
        code: u64,
        /// The process whose fault it is, which fails then (Xid 13, 31, 43)
        #[arg(long, allow_negative_numbers = true)]
        pid: Option<u32>,
    },
    /// A GPU's memory has errors: corrected, or not (Xid 48; programs there fail).
    Ecc {
        #[command(flatten)]
        gpu: OneGpu,
        /// They were corrected, as when nothing is said
        #[arg(long, conflicts_with = "uncorrected")]
        corrected: bool,
        /// They could not be corrected
        #[arg(long)]
        uncorrected: bool,
        /// How many
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000), allow_negative_numbers = true)]
        count: u64,
    },
    /// Driver calls do not come back until this is cleared.
    Hang(Calls),
    /// Driver calls answer an error of NVML.
    Error {
        /// Its name: NOT_SUPPORTED, UNKNOWN, ...
        #[arg(long)]
        code: NvmlCode,
        #[command(flatten)]
        calls: Calls,
    },
    /// A GPU runs at half its speed, and the driver says why.
    Throttle {
        #[command(flatten)]
        gpu: OneGpu,
        /// Why
        #[arg(long, value_enum, default_value_t = Reason::Thermal)]
        reason: Reason,
    },
    /// Memory of a GPU is in use that belongs to no process.
    Leak {
        #[command(flatten)]
        gpu: OneGpu,
        /// How much more: 4GiB; a bare number is MiB
        #[arg(long, value_name = "SIZE", value_parser = memory, allow_hyphen_values = true)]
        memory: u64,
    },
    /// An unmanaged process appears; its number is printed.
    Foreign(occupy::Arguments),
    /// The MPS server of a GPU is killed.
    MpsCrash(OneGpu),
    /// Mend everything, or one GPU.
    Clear {
        /// The GPU, by its number in PCI order or its UUID
        #[arg(long)]
        gpu: Option<String>,
    },
    /// List what stands.
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
    /// The GPU, by its number in PCI order or its UUID
    #[arg(long)]
    gpu: String,
}

#[derive(Debug, Args)]
pub(super) struct Calls {
    /// Only calls about this GPU, by its number in PCI order or its UUID
    #[arg(long)]
    gpu: Option<String>,
    /// Only the call of this name, in all its versions unless one is named:
    /// nvmlDeviceGetMemoryInfo
    #[arg(long, value_name = "NAME", value_parser = call_name)]
    call: Option<String>,
}

fn call_name(text: &str) -> Result<String, String> {
    let plain = text.starts_with("nvml") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then(|| text.to_owned()).ok_or_else(|| "calls of the driver begin with nvml".to_owned())
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
            format!("GPU {gpu} is there again")
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
            gpu.map_or_else(|| "all GPUs are mended".to_owned(), |gpu| format!("GPU {gpu} is mended"))
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
