//! `carma up`: the manager, in the foreground or on its own.

mod signals;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use carma_emu::{Machine, VARIABLE};
use carma_gpu::mps::PROGRAM;
use carma_gpu::profiling::Options;
use carma_manager::client::{Address, Client};
use carma_manager::configuration::Configuration;
use carma_manager::engine::{Engine, Setup, World};
use carma_manager::places::Places;
use carma_manager::serve::{Server, Serving};
use carma_manager::store::Store;
use carma_manager::{notify, open_files};
use clap::Args;

use crate::gpus::{self, find};
use crate::web;
use signals::{handle_signals, shut_down};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keep everything in this folder: state, socket and configuration.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Read this configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Go on in the background, and say when it is ready.
    #[arg(long)]
    detach: bool,
    /// Watch, estimate and explain, and launch nothing.
    #[arg(long)]
    observe: bool,
    /// Run jobs without GPUs only, whatever GPUs there are.
    #[arg(long)]
    no_gpus: bool,
    /// Write every event and decision to this file, for carma replay-log.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut places = match &arguments.state {
        // Jobs are launched from other folders than this.
        Some(folder) => Places::at(&std::path::absolute(folder).context("cannot tell where the folder of the state is")?),
        None => Places::own(),
    };
    if let Some(file) = &arguments.config {
        ensure!(file.exists(), "there is no file {}", file.display());
        places.configuration.clone_from(file);
    }
    if arguments.detach {
        return detach(&places);
    }
    let signals = signals::catch()?;
    // Every connection and every attempt takes some of the files that a process may have open.
    open_files::raise_limit();
    let configuration = Configuration::read(&places.configuration)?;
    let (driver, world) = if arguments.no_gpus { (None, no_gpus()) } else { world()? };
    let store = Arc::new(Store::open(places.database())?);
    let record = arguments.record.as_ref().map(std::path::absolute).transpose()?;
    let program = std::env::current_exe().context("cannot say which program this is")?;
    let setup = Setup {
        places: places.clone(),
        configuration: configuration.clone(),
        driver,
        world,
        program: program.clone(),
        observes: arguments.observe,
        record,
    };
    let words = setup.world.words.clone();
    let (handle, arriving) = Engine::handle();
    // What cannot be listened on is told before anything is launched.
    let serving = Serving {
        handle: handle.clone(),
        store: Arc::clone(&store),
        places: places.clone(),
        settings: configuration.manager,
        pages: web::FILES,
        program,
    };
    let settings = serving.settings.clone();
    let server = Server::bind(serving)?;
    let (address, metrics) = (server.address(), server.metrics_address());
    let engine = Engine::start(setup, store, &handle, arriving)?;
    handle_signals(signals, handle.clone(), places.configuration.clone(), settings)?;
    eprintln!("carma: manages {words}; listens on {}", places.socket.display());
    address.inspect(|address| eprintln!("carma: listens on {address} too"));
    metrics.inspect(|address| eprintln!("carma: metrics are on http://{address}/metrics, for whoever reaches it"));
    // Whoever started us as a service waits for this; others do not listen.
    let _ = notify::ready();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let run = move || {
        let outcome = server.run(stopped);
        // Without anybody to ask it, the manager had better be started again.
        shut_down(&handle);
        outcome
    };
    let serving = thread::Builder::new().name("server".to_owned()).spawn(run)?;
    let ended_well = engine.join();
    let _ = notify::stopping();
    let _ = stop.send(());
    serving.join().unwrap_or(Ok(()))?;
    ensure!(ended_well, "the engine broke: start the manager again, and nothing is lost");
    eprintln!("carma: stopped; jobs that run go on");
    Ok(())
}

/// The GPUs there are, and what jobs need to find them.
fn world() -> Result<(Option<Arc<carma_gpu::Driver>>, World)> {
    let (driver, found) = find()?;
    let profiling = gpus::profiler_options(&found);
    let words = found.to_string();
    let world = match found {
        gpus::World::Real => World {
            words,
            speed: 1.0,
            environment: BTreeMap::new(),
            search_paths: BTreeMap::new(),
            profiling,
            mps_folder: if nix::unistd::geteuid().is_root() { "/run/carma/mps".into() } else { Places::own().state.join("mps") },
            mps_program: PROGRAM.into(),
        },
        gpus::World::Emulated(folder) => {
            let machine = Machine::open(&folder)?;
            World {
                words,
                speed: machine.clock()?.1,
                environment: BTreeMap::from([(VARIABLE.to_owned(), folder.display().to_string())]),
                search_paths: machine.search_paths().map(|(name, folder)| (name.to_owned(), folder)).into(),
                profiling,
                mps_folder: folder.join("mps"),
                mps_program: folder.join("bin").join(PROGRAM),
            }
        }
    };
    Ok((Some(Arc::new(driver)), world))
}

fn no_gpus() -> World {
    World {
        words: "no GPUs".to_owned(),
        speed: 1.0,
        environment: BTreeMap::new(),
        search_paths: BTreeMap::new(),
        profiling: Options::default(),
        mps_folder: PathBuf::new(),
        mps_program: PROGRAM.into(),
    }
}

/// Starts the same again on its own, and waits until it answers.
fn detach(places: &Places) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(20);
    fs::create_dir_all(&places.state).with_context(|| format!("cannot create {}", places.state.display()))?;
    let log = places.state.join("manager.log");
    let file = fs::File::options().create(true).append(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let begins = file.metadata()?.len();
    let words = std::env::args_os().skip(1).filter(|word| word != "--detach");
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn()?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            let said = fs::read(&log).unwrap_or_default();
            let said =
                String::from_utf8_lossy(said.get(begins as usize..).unwrap_or_default()).trim().trim_start_matches("carma: ").to_owned();
            bail!("the manager did not start ({status}): {said}");
        }
        if answers(&places.socket, child.id()) {
            println!("The manager runs as process {}; its log is {}", child.id(), log.display());
            return Ok(());
        }
        ensure!(Instant::now() < until, "the manager does not answer yet; its log is {}", log.display());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether it is this process that answers.
fn answers(socket: &Path, pid: u32) -> bool {
    let status = Client::at(Address::Socket(socket.to_owned())).and_then(|mut client| client.status());
    status.is_ok_and(|status| status.pid == pid)
}
