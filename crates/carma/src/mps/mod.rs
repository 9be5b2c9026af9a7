//! `carma mps`: starts, shows and stops one MPS daemon per GPU.

mod folder;

pub(crate) use folder::MpsFolder;

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use carma_core::MiB;
use carma_gpu::mps::{ClientLimits, Health};
use carma_gpu::{ComputeAccess, ComputeModeChange, Driver, Gpu, Monitor, ProcessKind, ownership};
use clap::{Args, Subcommand};

use crate::gpus::{World, choose, find};
use crate::units::{bytes, quoted};
use carma_format::{count, labelled};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the MPS daemon of a GPU.
    Start(StartArguments),
    /// Stop the MPS daemon of a GPU, and restore the compute mode.
    #[command(after_help = "Example:\n  carma mps stop --gpu 0")]
    Stop {
        /// The GPU: its number in `carma gpus`, or its UUID.
        #[arg(long)]
        gpu: String,
        /// Seconds that clients get to end by themselves.
        #[arg(long, default_value_t = 5)]
        patience: u64,
    },
    /// Show the state of MPS daemons and servers.
    #[command(after_help = "Example:\n  carma mps status")]
    Status,
    /// Print the shell variables of an MPS client: eval "$(carma mps env --gpu 0)"
    #[command(after_help = "Example:\n  eval \"$(carma mps env --gpu 0)\"")]
    Env {
        /// The GPU: its number in `carma gpus`, or its UUID.
        #[arg(long)]
        gpu: String,
        #[command(flatten)]
        limits: LimitArguments,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  carma mps start --gpu 0 --active-threads 50")]
pub(crate) struct StartArguments {
    /// The GPU: its number in `carma gpus`, or its UUID.
    #[arg(long)]
    gpu: String,
    #[command(flatten)]
    limits: LimitArguments,
    /// Keep the compute mode, so that processes without MPS can use the GPU too.
    #[arg(long)]
    shared: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LimitArguments {
    /// Limit of multiprocessors per client, in percent.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    active_threads: Option<u8>,
    /// Memory limit per client, such as 8GiB; a bare number is MiB.
    #[arg(long, value_parser = some_memory)]
    memory: Option<u64>,
}

impl LimitArguments {
    fn limits(&self) -> ClientLimits {
        ClientLimits { active_threads: self.active_threads, memory: self.memory.map(|bytes| MiB(bytes >> 20)) }
    }
}

pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    let (driver, world) = find()?;
    let inventory = driver.inventory()?;
    let folder = |gpu: &Gpu| MpsFolder::new(&world, &gpu.uuid);
    match command {
        Command::Start(StartArguments { gpu, limits, shared }) => {
            let gpu = choose(&inventory, gpu)?;
            check_free(&driver, gpu, *shared)?;
            let folder = folder(gpu);
            folder.control().start(limits.limits())?;
            if !shared {
                let change = ComputeModeChange::plan(&driver, &gpu.uuid, ComputeAccess::ExclusiveProcess)?;
                folder.save(&change)?;
                let made = change.make(&driver);
                if made.is_err() {
                    folder.forget();
                    folder.control().stop(Duration::ZERO)?;
                }
                made.context("the compute mode; without this, give --shared")?;
            }
            eprintln!("carma: MPS serves {}. For a client: eval \"$(carma mps env --gpu {})\"", gpu.name, gpu.uuid);
            Ok(())
        }
        Command::Stop { gpu, patience } => {
            let gpu = choose(&inventory, gpu)?;
            let folder = folder(gpu);
            folder.control().stop(Duration::from_secs(*patience))?;
            if let Some(change) = folder.saved()? {
                change.restore(&driver)?;
                folder.forget();
            }
            Ok(())
        }
        Command::Status => {
            for gpu in &inventory.gpus {
                let text = folder(gpu)
                    .control()
                    .health()
                    .map_or_else(|error| format!("MPS cannot be asked: {error}"), |health| health_text(&health));
                writeln!(output, "{}", labelled(&format!("GPU {}  {}", gpu.index, gpu.name), 33, &text))?;
            }
            Ok(())
        }
        Command::Env { gpu, limits } => {
            let gpu = choose(&inventory, gpu)?;
            for (name, value) in limits.limits().environment(&folder(gpu).control()) {
                writeln!(output, "export {name}={}", quoted(&value.to_string_lossy()))?;
            }
            Ok(())
        }
    }
}

/// Whether our MPS daemon serves a GPU.
pub(crate) fn serves(world: &World, gpu: &Gpu) -> Result<bool> {
    Ok(MpsFolder::new(world, &gpu.uuid).control().health()? != Health::NotRunning)
}

fn some_memory(word: &str) -> Result<u64, String> {
    bytes(word)
        .and_then(|bytes| if bytes < 1 << 20 { Err("a client needs some memory: give at least 1 MiB".to_owned()) } else { Ok(bytes) })
}

/// MPS cannot serve a GPU with MIG instances, and cannot be exclusive while other processes use it.
fn check_free(driver: &Driver, gpu: &Gpu, shared: bool) -> Result<()> {
    if gpu.mig == Some(true) {
        bail!("{} is partitioned into MIG instances: `carma mig apply --gpu {} off` makes it whole", gpu.name, gpu.index);
    }
    let (observations, _) = Monitor::default().sample(driver, std::slice::from_ref(&gpu.uuid));
    let others = observations.into_iter().filter_map(|observation| observation.reading.ok()).flat_map(|reading| reading.processes);
    let others: Vec<String> =
        others.filter(|process| process.kind != ProcessKind::Graphics).map(|process| process.pid.to_string()).collect();
    if !shared && !others.is_empty() {
        bail!("process {} uses the GPU, and MPS needs it exclusively: wait for its end, or give --shared", others.join(", "));
    }
    Ok(())
}

fn health_text(health: &Health) -> String {
    match health {
        Health::NotRunning => "no MPS".to_owned(),
        Health::Idle => "MPS waits for its first client".to_owned(),
        Health::Unresponsive => "the MPS daemon does not answer".to_owned(),
        Health::Serving(server) => {
            let owner = ownership(server.pid).and_then(|owner| owner.user).unwrap_or_else(|| "an unknown user".to_owned());
            format!("MPS server {} serves {owner}: {}", server.pid, count(server.clients.len(), "client"))
        }
        Health::Faulty(server) => {
            format!("MPS server {} is faulty until all have ended: {}", server.pid, count(server.clients.len(), "client"))
        }
    }
}
