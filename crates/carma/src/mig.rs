//! `carma mig`: MIG instances of GPUs.

use std::io::Write;

use anyhow::{Result, bail};
use carma_gpu::mig::{self, Layout, MigState, Mode};
use carma_gpu::{Driver, Gpu};
use clap::{Args, Subcommand};

use crate::gpus::{choose, choose_whole, find};
use crate::mps;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the MIG instances of GPUs, and the possible layouts.
    #[command(after_help = "Example:\n  carma mig show --gpu 0")]
    Show {
        /// Only this GPU: its number in `carma gpus`, or its UUID.
        #[arg(long)]
        gpu: Option<String>,
    },
    /// Create MIG instances. Instances that fit the layout are kept, with their jobs.
    Apply(ApplyArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma mig apply --gpu 0 3g.20gb,2x1g.5gb --dry-run")]
pub(crate) struct ApplyArguments {
    /// The GPU: its number in `carma gpus`, or its UUID.
    #[arg(long)]
    gpu: String,
    /// The instances, such as 3g.20gb,2x1g.5gb; `none` for MIG mode without instances, `off` for a whole GPU.
    layout: Layout,
    /// Print the steps, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    let (driver, world) = find()?;
    let inventory = driver.inventory()?;
    match command {
        Command::Show { gpu } => {
            let wanted = gpu.as_ref().map(|name| choose(&inventory, name)).transpose()?;
            for gpu in inventory.gpus.iter().filter(|gpu| wanted.is_none_or(|wanted| wanted.uuid == gpu.uuid)) {
                show(&driver, gpu, output)?;
            }
        }
        Command::Apply(ApplyArguments { gpu, layout, dry_run }) => {
            let gpu = choose_whole(&inventory, gpu)?;
            let plan = mig::prepare(&driver, &gpu.uuid, layout)?;
            if plan.steps.is_empty() {
                writeln!(output, "nothing to do: it has this layout")?;
            }
            for step in &plan.steps {
                writeln!(output, "{step}")?;
            }
            if !dry_run && !plan.steps.is_empty() {
                if mps::serves(&world, gpu)? {
                    bail!("an MPS daemon uses the GPU: `carma mps stop --gpu {}` stops it", gpu.index);
                }
                write_instances(&mig::apply(&driver, &gpu.uuid, layout)?, output)?;
            }
        }
    }
    Ok(())
}

fn show(driver: &Driver, gpu: &Gpu, output: &mut impl Write) -> Result<()> {
    let state = mig::list(driver, &gpu.uuid)?;
    let mode = match state.mode {
        Mode::Unsupported => "cannot be partitioned into instances",
        Mode::Off => "is whole",
        Mode::On if state.instances.is_empty() => "is in MIG mode, without instances",
        Mode::On => "is partitioned into",
    };
    writeln!(output, "GPU {}  {} {mode}", gpu.index, gpu.name)?;
    write_instances(&state, output)?;
    let kinds: Vec<String> = mig::profiles(driver, &gpu.uuid)?.iter().map(|profile| profile.name.to_string()).collect();
    if !kinds.is_empty() {
        writeln!(output, "  possible: {}", kinds.join(", "))?;
    }
    Ok(())
}

fn write_instances(state: &MigState, output: &mut impl Write) -> Result<()> {
    for instance in &state.instances {
        let users = state.processes_on(instance).count();
        let uuid = instance.compute.first().map_or("no compute instance", |compute| compute.uuid.as_str());
        let busy = if users == 0 { String::new() } else { format!("  {users} processes") };
        writeln!(
            output,
            "  {:>2}  {:<9}  {:>6} MiB  {uuid}{busy}",
            instance.gpu_instance,
            instance.profile.to_string(),
            instance.memory.0
        )?;
    }
    Ok(())
}
