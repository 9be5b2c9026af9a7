//! `carma pool add slurm`.

use std::io::Write;

use anyhow::Result;
use carma_core::{MiB, Seconds};
use carma_manager::api::NewPool;
use carma_manager::cluster::{PoolName, PoolSettings};
use carma_manager::submission::{memory_size, span_with_unit};
use clap::Args;

use crate::manager::Manager;

#[derive(Debug, Args)]
#[command(after_help = "\
A pool requests a pilot only if a waiting job fits it, no present or pending GPU is \
predicted to take that job within --patience, and fewer than --backlog pilots wait \
in Slurm's queue. Three failures in a row pause the pool.

Example:
  carma pool add slurm gpu --partition gpu --gpus 4 --time 8h --mem 64GiB \\
    --setup 'module load cuda' -- --exclude=gn7")]
pub(crate) struct Arguments {
    /// The name of the pool.
    name: PoolName,
    /// The partition [default: that of Slurm].
    #[arg(long)]
    partition: Option<String>,
    /// GPUs of a pilot, all on one node.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus: u32,
    /// The type of GPU as Slurm names it, such as a100.
    #[arg(long, value_name = "TYPE")]
    gpu_type: Option<String>,
    /// Memory of each GPU, until the first agent reports it.
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    gpu_memory: Option<MiB>,
    /// Time limit of a pilot, as in 8h.
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = time)]
    time: Seconds,
    /// Cores of a pilot.
    #[arg(long, value_name = "NUMBER")]
    cpus: Option<u32>,
    /// Host memory of a pilot.
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    mem: Option<MiB>,
    /// Maximum number of pilots.
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    max: u32,
    /// Maximum number of pending pilots.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    backlog: u32,
    /// Return a pilot without jobs after this time.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    idle: Seconds,
    /// Request no pilot for a job that is predicted to start within this time.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    patience: Seconds,
    /// The account to charge.
    #[arg(long)]
    account: Option<String>,
    /// The quality of service.
    #[arg(long)]
    qos: Option<String>,
    /// Features that nodes must have.
    #[arg(long)]
    constraint: Option<String>,
    /// A shell command that runs before the agent, in the same shell.
    #[arg(long, value_name = "COMMAND")]
    setup: Option<String>,
    /// A shell command that runs after the agent.
    #[arg(long, value_name = "COMMAND")]
    teardown: Option<String>,
    /// Further arguments of sbatch.
    #[arg(last = true, value_name = "SBATCH ARGUMENTS")]
    extra: Vec<String>,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let settings = PoolSettings {
        partition: arguments.partition.clone(),
        gpus: arguments.gpus,
        gpu_type: arguments.gpu_type.clone(),
        gpu_memory: arguments.gpu_memory,
        time: arguments.time,
        cpus: arguments.cpus,
        mem: arguments.mem,
        max: arguments.max,
        backlog: arguments.backlog,
        idle: arguments.idle,
        patience: arguments.patience,
        account: arguments.account.clone(),
        qos: arguments.qos.clone(),
        constraint: arguments.constraint.clone(),
        setup: arguments.setup.clone(),
        teardown: arguments.teardown.clone(),
        extra: arguments.extra.clone(),
    };
    let name = arguments.name.clone();
    arguments.manager.connect()?.add_pool(&NewPool { name: name.clone(), settings })?;
    Ok(writeln!(output, "pool {name} is added; `carma pool test {name}` asks Slurm whether it accepts its pilots")?)
}

fn time(text: &str) -> Result<Seconds, String> {
    let seconds = span_with_unit(text).ok_or_else(|| "write a time with its unit, as in 30m or 8h".to_owned())?;
    Ok(Seconds::from_secs(seconds))
}
