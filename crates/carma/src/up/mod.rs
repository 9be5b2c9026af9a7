//! `carma up`: the manager, in the foreground or on its own.

mod in_slurm;
mod log;
mod network;
mod signals;
mod state;
mod watchdog;

pub(crate) use log::LogArguments;

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use carma_manager::client::{Address, Client};
use carma_manager::configuration::{Configuration, Source, lines};
use carma_manager::engine::{Engine, Setup};
use carma_manager::open_files;
use carma_manager::places::{Places, create_private};
use carma_manager::serve::{Server, Serving};
use carma_manager::supervise::{LaunchServer, THIS_PROGRAM, enforceable, prepare_group_of_jobs};
use clap::Args;
use sd_notify::NotifyState;

use crate::web;
use crate::world::{without_gpus, world};
use signals::{handle_signals, shut_down};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(after_help = "Examples:\n  carma up --detach\n  carma up --observe\n  carma up --in-slurm -- --partition cpu")]
pub(crate) struct Arguments {
    /// The folder for all files: state, socket and configuration.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Read this configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run in the background; return when the manager is ready.
    #[arg(long)]
    detach: bool,
    /// Watch and explain, but start no jobs.
    #[arg(long)]
    observe: bool,
    /// Use no GPUs; run only jobs without GPUs.
    #[arg(long)]
    no_gpus: bool,
    /// Run no jobs on this host, only on other servers with an agent. For login nodes.
    #[arg(long)]
    no_local: bool,
    /// Accept jobs of other users, and run all jobs as this account. Jobs can then read and change the files of other users.
    #[arg(long)]
    shared_account: bool,
    /// Write every event and decision to this file, for `carma replay-log`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Let your commands on other hosts reach the manager over an encrypted connection. They need the same state folder (`manager.json`).
    #[arg(long)]
    network: bool,
    #[command(flatten)]
    slurm: in_slurm::SlurmArguments,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut places = match &arguments.state {
        // Jobs start in other folders than this.
        Some(folder) => Places::at(&std::path::absolute(folder).context("cannot tell where the folder of the state is")?),
        None => Places::own(),
    };
    if let Some(file) = &arguments.config {
        ensure!(file.exists(), "there is not a file {}", file.display());
        places.configuration.clone_from(file);
    }
    if arguments.slurm.in_slurm {
        return arguments.slurm.submit(&places);
    }
    if arguments.detach {
        return detach(&places);
    }
    arguments.log.start()?;
    let mut signals = signals::catch()?;
    // Every connection and every attempt takes some of the files that a process may have open.
    open_files::raise_limit();
    prepare_group_of_jobs();
    let mut configuration = Configuration::read(&places.configuration)?;
    if arguments.shared_account {
        configuration.manager.shared_account = true;
        configuration.given.insert("manager.shared_account".to_owned(), Source::Flag("--shared-account".to_owned()));
    }
    for warning in lines(&places.configuration, &configuration.warnings) {
        tracing::warn!("{warning}");
    }
    let (driver, world) = if arguments.no_gpus || arguments.no_local { (None, without_gpus()?) } else { world()? };
    let store = Arc::new(state::open(&places, &mut signals)?);
    let record = arguments.record.as_ref().map(std::path::absolute).transpose()?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let setup = Setup {
        places: places.clone(),
        configuration: configuration.clone(),
        driver,
        world,
        program: program.clone(),
        launch_server: Arc::new(LaunchServer::new(THIS_PROGRAM)),
        local: !arguments.no_local,
        observes: arguments.observe,
        enforced: enforceable(),
        record,
    };
    let words = setup.world.description.clone();
    let (handle, arriving) = Engine::handle();
    // An address that is in use is an error before anything is launched.
    let serving = Serving {
        handle: handle.clone(),
        store: Arc::clone(&store),
        places: places.clone(),
        settings: configuration.manager,
        pages: web::FILES,
        program,
    };
    let settings = serving.settings.clone();
    let invitation = network::invite(arguments.network, &places, &settings)?;
    let server = match &invitation {
        Some(invitation) => Server::bind_with(serving, &invitation.network)?,
        None => Server::bind(serving)?,
    };
    let (address, metrics) = (server.address(), server.metrics_address());
    let engine = Engine::start(setup, Arc::clone(&store), &handle, arriving)?;
    // Only now: until here, a manager that could not start would have replaced the file of another.
    let published = network::publish(invitation, address)?;
    watchdog::start(&handle, &settings)?;
    handle_signals(signals, handle.clone(), places.configuration.clone(), settings)?;
    tracing::info!("manages {words}; listens on {}", places.socket.display());
    address.inspect(|address| tracing::info!("listens on {address} too"));
    metrics.inspect(|address| tracing::info!("metrics are on http://{address}/metrics, without authentication"));
    // systemd waits for this; without systemd it does nothing.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let run = move || {
        let outcome = server.run(stopped);
        // A manager without its server is of no use: it ends, and a service restarts it.
        shut_down(&handle);
        outcome
    };
    let serving = thread::Builder::new().name("server".to_owned()).spawn(run)?;
    let ended_well = engine.join();
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    let _ = stop.send(());
    serving.join().unwrap_or(Ok(()))?;
    drop(published);
    // Other threads may still have the store, so that it would not be closed by itself.
    store.close();
    ensure!(ended_well, "the engine failed: start the manager again; nothing is lost");
    tracing::info!("stopped; running jobs continue");
    Ok(())
}

/// Starts the same again on its own, and waits until it answers.
fn detach(places: &Places) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(20);
    // The manager lets other users traverse it where it runs their jobs.
    create_private(&places.state).with_context(|| format!("cannot create {}", places.state.display()))?;
    let log = places.state.join("manager.log");
    let file =
        fs::File::options().create(true).append(true).mode(0o600).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let begins = file.metadata()?.len();
    let arguments = std::env::args_os().skip(1).filter(|word| word != "--detach");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()?;
    let mut until = Instant::now() + TIMEOUT;
    let mut waits = false;
    let written = || {
        let written = fs::read(&log).unwrap_or_default();
        String::from_utf8_lossy(written.get(begins as usize..).unwrap_or_default()).into_owned()
    };
    loop {
        if let Some(status) = child.try_wait()? {
            let written = written();
            // The error comes last, after lines of the log.
            let error = written.rsplit_once("\ncarma: ").map_or(&*written, |(_, error)| error).trim().trim_start_matches("carma: ");
            bail!("the manager did not start ({status}): {error}");
        }
        if answers(&places.socket, child.id()) {
            println!("The manager runs as process {}; its log is {}", child.id(), log.display());
            return Ok(());
        }
        if !waits && written().contains(state::WAITING) {
            waits = true;
            until += state::LONGEST_WAIT;
            eprintln!("carma: another manager had this state; {}", state::WAITING);
        }
        ensure!(Instant::now() < until, "the manager does not answer yet; its log is {}", log.display());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this process answers.
fn answers(socket: &Path, pid: u32) -> bool {
    let status = Client::at(Address::Socket(socket.to_owned())).and_then(|mut client| client.status());
    status.is_ok_and(|status| status.pid == pid)
}
