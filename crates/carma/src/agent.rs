//! `carma agent`: runs jobs on this server for a manager on another host.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use carma_manager::agent::{self, AgentEnd, AgentSetup, ManagerAddress};
use carma_manager::places::Places;
use carma_manager::supervise::THIS_PROGRAM;
use clap::Args;

use crate::up::LogArguments;
use crate::world::{without_gpus, world};

#[derive(Debug, Args)]
#[command(after_help = "\
Pilots of `carma pool` start an agent by themselves. Started by hand on another host, it \
adds the GPUs of that host to the manager. The manager listens for agents once it \
has a pool, or if manager.agents.listen is set. It writes its address and the \
secret to agents.json and agents.secret in its state folder.

The agent uses only the GPUs of its allocation (CUDA_VISIBLE_DEVICES, Slurm). \
Its jobs end with it. Signals: USR1 announces the end, TERM ends it.

Example:
  carma agent --manager login1:7090 --secret ~/agents.secret")]
pub(crate) struct Arguments {
    /// Address of the manager.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "manager_file")]
    manager: Option<String>,
    /// The file with the address of the manager [default: agents.json in the state folder].
    #[arg(long, value_name = "FILE")]
    manager_file: Option<PathBuf>,
    /// The file with the shared secret [default: agents.secret in the state folder].
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
    /// The state folder of the manager.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// The name of the pilot in which the agent runs.
    #[arg(long, value_name = "NAME")]
    pilot: Option<String>,
    /// The folder for checkpoints, which all servers share [default: attempts in the state folder].
    #[arg(long, value_name = "FOLDER")]
    checkpoints: Option<PathBuf>,
    /// A folder on a local disk for running jobs [default: one in TMPDIR].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// End of the batch job, in seconds since 1970.
    #[arg(long, value_name = "SECONDS")]
    ends_at: Option<u64>,
    /// Start no jobs in this many seconds before the end.
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    drain: u64,
    /// Offer no GPUs, only cores and memory.
    #[arg(long)]
    no_gpus: bool,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.log.start()?;
    let state = arguments.state.clone().map_or_else(|| Places::own().state, |state| Places::at(&state).state);
    let state = std::path::absolute(state)?;
    let (driver, world) = if arguments.no_gpus { (None, without_gpus()?) } else { world()? };
    let manager = match (&arguments.manager, &arguments.manager_file) {
        (Some(address), _) => ManagerAddress::Fixed(address.clone()),
        (None, file) => ManagerAddress::File(file.clone().unwrap_or_else(|| state.join("agents.json"))),
    };
    let node = variable("SLURMD_NODENAME").unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    let name = arguments.pilot.clone().unwrap_or_else(|| format!("carma-agent-{}", std::process::id()));
    let setup = AgentSetup {
        manager,
        secret: arguments.secret.clone().unwrap_or_else(|| state.join("agents.secret")),
        pilot: arguments.pilot.clone(),
        batch_job: variable("SLURM_JOB_ID"),
        node,
        // A pilot that is started twice has two folders.
        folder: arguments.folder.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("{name}-{}", std::process::id()))),
        checkpoints: arguments.checkpoints.clone().unwrap_or_else(|| state.join("attempts")),
        left: arguments.ends_at.map(left),
        drain: Duration::from_secs(arguments.drain),
        driver,
        world,
        program: std::env::current_exe().context("cannot find the path of this program")?,
        launch_program: THIS_PROGRAM.into(),
    };
    match agent::run(setup)? {
        AgentEnd::Done(reason) => {
            tracing::info!("the agent ends: {reason}");
            Ok(())
        }
        AgentEnd::Refused(reason) => bail!("the manager refused this agent: {reason}"),
        AgentEnd::LeaseLost => bail!("the manager did not answer for the time of the lease: all jobs were ended"),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Time until a moment of the wall clock.
fn left(ends_at: u64) -> Duration {
    (UNIX_EPOCH + Duration::from_secs(ends_at)).duration_since(SystemTime::now()).unwrap_or_default()
}
