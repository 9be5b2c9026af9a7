//! The emulated server: made, shown.

use std::collections::BTreeSet;
use std::env;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use carma_emu::fault::Fault;
use carma_emu::state::{ContextKind, Place, State, StateError};
use carma_emu::{DriverVersion, Machine, MachineError, Profile, Profiling};
use carma_gpu::{Ownership, ownership};
use carma_sim::{Servers, ServersError};
use clap::Args;

use carma_format::{count, duration, left, right, write_table};

/// Most processes that are named.
const MOST_LISTED: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma emu up --gpus 4xA100-40GB --speed 60")]
pub(super) struct UpArguments {
    /// The GPUs: 4xA100-40GB, or several kinds separated by commas; `carma emu kinds` lists the kinds
    #[arg(long, default_value = "4xA100-40GB", value_parser = servers, allow_hyphen_values = true)]
    gpus: Servers,
    /// Speed of emulated time: with 60, an hour of training takes a minute
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    speed: f64,
    /// The driver version: 575, or 615, which enforces memory limits of control groups
    #[arg(long, default_value = "575")]
    driver: DriverVersion,
}

fn servers(text: &str) -> Result<Servers, String> {
    text.parse().map_err(|error: ServersError| match error {
        ServersError::Form(_) => {
            format!("{text:?} is not a server description: write 4xA100-40GB; `carma emu kinds` lists the kinds of GPUs")
        }
        ServersError::UnknownGpu(kind) => format!("unknown GPU type {kind:?}: `carma emu kinds` lists all"),
        error @ ServersError::TooMany(_) => error.to_string(),
    })
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma emu down --force")]
pub(super) struct DownArguments {
    /// Remove it even if processes use the GPUs: their next CUDA call fails
    #[arg(long)]
    force: bool,
}

/// Makes a server, and prints how to use it.
pub(super) fn up(arguments: &UpArguments, folder: &Path) -> Result<()> {
    let program = env::current_exe().context("cannot find this program")?;
    Machine::create(folder, &arguments.gpus, arguments.speed, Some(&program))?.set_driver(arguments.driver)?;
    let gpus = arguments.gpus.gpus() as usize;
    let (are, them) = if gpus == 1 { ("is", "it") } else { ("are", "them") };
    eprintln!("carma: {} {are} emulated in {}. To use {them}:", count(gpus, "GPU"), folder.display());
    eprintln!("  eval \"$({})\"", Machine::command("env", folder));
    eprintln!("Then nvitop, gpustat, carma gpus and all that asks NVML will see {them}, until `{}`.", Machine::command("down", folder));
    Ok(())
}

/// Removes a server that is not in use, or any with force, and prints a confirmation.
pub(super) fn down(arguments: &DownArguments, folder: &Path) -> Result<()> {
    let (gpus, users) = match Machine::open(folder) {
        Ok(machine) => machine.with(|state| (count(state.gpus.len(), "emulated GPU"), users(state)))?,
        // A server of another version is not usable, and this command removes it.
        Err(MachineError::State(StateError::Layout { .. })) => ("emulated GPUs of another version".to_owned(), Vec::new()),
        Err(error) => return Err(error.into()),
    };
    if !arguments.force && !users.is_empty() {
        bail!("{} on the GPUs: stop what is there, or use --force\n{}", count(users.len(), "process"), listed(&users));
    }
    let daemons = Machine::remove(folder)?;
    let stopped = if daemons == 0 { String::new() } else { format!(", stopped {}", count(daemons, "MPS daemon")) };
    let left = if users.is_empty() { String::new() } else { format!(", took the GPUs from {}", count(users.len(), "process")) };
    eprintln!("carma: removed {gpus} in {}{stopped}{left}", folder.display());
    Ok(())
}

/// Processes on the GPUs except those of MPS, which are the machine's own.
fn users(state: &State<'_>) -> Vec<u32> {
    let users: BTreeSet<u32> =
        state.contexts().iter().filter(|context| context.kind() != ContextKind::MpsServer).map(|context| context.pid).collect();
    users.into_iter().collect()
}

/// Processes with their owners and commands.
fn listed(pids: &[u32]) -> String {
    let line = |pid: &u32| match ownership(*pid) {
        Some(Ownership { uid, user, command, .. }) => format!("  {pid}  {}  {command}", user.unwrap_or_else(|| uid.to_string())),
        None => format!("  {pid}"),
    };
    let more = pids.len().checked_sub(MOST_LISTED).filter(|more| *more > 0).map(|more| format!("  and {more} more"));
    pids.iter().take(MOST_LISTED).map(line).chain(more).collect::<Vec<_>>().join("\n")
}

/// Prints the emulated machine.
pub(super) fn show(machine: &Machine, output: &mut impl Write) -> Result<()> {
    let (head, rows, faults) = machine.with(|state| {
        let (speed, age) = (state.header.speed, duration(state.header.now));
        let gpus = count(state.gpus.len(), "GPU");
        let head = format!("{gpus} in {}, {age} old; time runs at {speed} times its speed", machine.folder().display());
        (head, (0..state.gpus.len()).map(|gpu| row(state, gpu)).collect::<Vec<_>>(), Fault::active(state))
    })?;
    writeln!(output, "{head}")?;
    let columns = [right("GPU", 3), left("kind", 15), left("UUID", 40), right("memory MiB", 14), right("procs", 5)];
    write_table(columns, &rows, output)?;
    faults.iter().try_for_each(|fault| writeln!(output, "{fault}"))?;
    Ok(())
}

fn row(state: &State<'_>, gpu: usize) -> [String; 5] {
    let memory = state.memory(Place::gpu(gpu));
    [
        gpu.to_string(),
        state.profile(gpu).kind.name.to_owned(),
        state.gpus[gpu].uuid.get().to_string(),
        format!("{}/{}", memory.used >> 20, memory.total >> 20),
        state.contexts_at(Place::gpu(gpu)).count().to_string(),
    ]
}

/// Prints the kinds of GPUs that can be emulated.
pub(super) fn kinds(output: &mut impl Write) -> Result<()> {
    let row = |Profile { kind, facts, mig }: &Profile| {
        let profiling = match facts.profiling {
            Profiling::Gpm => "NVML",
            Profiling::Dcgm => "DCGM",
            Profiling::None => "-",
        };
        let [major, minor] = facts.capability;
        [
            kind.name.to_owned(),
            facts.product.clone(),
            (kind.memory.0 >> 10).to_string(),
            kind.limit_watts.to_string(),
            format!("{major}.{minor}"),
            profiling.to_owned(),
            if mig.is_empty() { "-" } else { "yes" }.to_owned(),
        ]
    };
    let columns =
        [left("kind", 15), left("product", 30), right("GiB", 3), right("W", 4), right("CUDA", 4), left("profiling", 9), left("MIG", 3)];
    Ok(write_table(columns, &Profile::all().iter().map(row).collect::<Vec<_>>(), output)?)
}
