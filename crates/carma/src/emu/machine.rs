//! The emulated server: made, shown.

use std::env;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use carma_emu::fault::Fault;
use carma_emu::state::{Place, State};
use carma_emu::{Machine, Profile, Profiling};
use carma_sim::Servers;
use clap::Args;

use super::environment::quoted;
use crate::units::duration;

#[derive(Debug, Args)]
pub(super) struct UpArguments {
    /// GPUs of one server: 4xA100-40GB, several kinds joined by commas;
    /// `carma emu kinds` lists them
    #[arg(long, default_value = "4xA100-40GB")]
    gpus: Servers,
    /// Emulated seconds a second: 60 is an hour of training in a minute
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
}

/// Makes a server, and says how to use it.
pub(super) fn up(arguments: &UpArguments, folder: &Path) -> Result<()> {
    let program = env::current_exe().context("cannot find this program")?;
    Machine::create(folder, &arguments.gpus, arguments.speed, Some(&program))?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let named = match folder.to_string_lossy() {
        _ if folder == Machine::default_folder() => String::new(),
        plain if is_plain(&plain) => format!(" --folder {plain}"),
        odd => format!(" --folder {}", quoted(&odd)),
    };
    eprintln!("carma: {} GPUs are emulated in {}. To use them:", arguments.gpus.gpus(), folder.display());
    eprintln!("  eval \"$(carma emu env{named})\"");
    eprintln!("Then nvitop, gpustat, carma gpus and all that asks NVML will see them, until `carma emu down{named}`.");
    Ok(())
}

/// Prints what is emulated.
pub(super) fn show(machine: &Machine, output: &mut impl Write) -> Result<()> {
    let (head, rows, faults) = machine.with(|state| {
        let (speed, age) = (state.header.speed, duration(state.header.now));
        let head = format!("{} GPUs in {}, {age} old; time runs at {speed} times its speed", state.gpus.len(), machine.folder().display());
        (head, (0..state.gpus.len()).map(|gpu| row(state, gpu)).collect::<Vec<_>>(), Fault::standing(state))
    })?;
    writeln!(output, "{head}")?;
    writeln!(output, "{:>3} {:<15} {:<40} {:>12} {:>5}", "GPU", "kind", "UUID", "memory MiB", "procs")?;
    rows.iter().try_for_each(|row| writeln!(output, "{row}"))?;
    faults.iter().try_for_each(|fault| writeln!(output, "{fault}"))?;
    Ok(())
}

fn row(state: &State<'_>, gpu: usize) -> String {
    let memory = state.memory(Place::gpu(gpu));
    let processes = state.contexts_at(Place::gpu(gpu)).count();
    let memory = format!("{}/{}", memory.used >> 20, memory.total >> 20);
    format!("{gpu:>3} {:<15} {:<40} {memory:>12} {processes:>5}", state.profile(gpu).kind.name, state.gpus[gpu].uuid.get())
}

/// Prints the kinds of GPUs that can be emulated.
pub(super) fn kinds(output: &mut impl Write) -> Result<()> {
    writeln!(output, "{:<15} {:<30} {:>3} {:>4} {:>4} {:<9} MIG", "kind", "product", "GiB", "W", "CUDA", "profiling")?;
    for Profile { kind, facts, mig } in Profile::all() {
        let profiling = match facts.profiling {
            Profiling::Gpm => "NVML",
            Profiling::Dcgm => "DCGM",
            Profiling::None => "-",
        };
        let [major, minor] = facts.capability;
        let slices = if mig.is_empty() { "-" } else { "yes" };
        let (gibibytes, watts) = (kind.memory.0 >> 10, kind.limit_watts);
        writeln!(output, "{:<15} {:<30} {gibibytes:>3} {watts:>4} {major:>2}.{minor} {profiling:<9} {slices}", kind.name, facts.product)?;
    }
    Ok(())
}
