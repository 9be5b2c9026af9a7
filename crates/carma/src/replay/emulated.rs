//! A manager with its own emulated GPUs, in a temporary folder.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use carma_core::Settings;
use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{JobAction, Shutdown, TimedUpdate};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::store::UnixMillis;
use carma_sim::Servers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

use super::follow::{ReplayUpdate, Replayed, replay};
use super::plan::Planned;

/// Timeout for the start or the end of a manager.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Why a run was given up.
pub(crate) const STOPPED: &str = "stopped; all jobs, managers and emulated GPUs have been removed";

/// Set when a signal asks us to stop. Managers end only with us, in order.
pub(crate) fn stopped_by_signals() -> Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped)).context("cannot handle signals")?;
    }
    Ok(stopped)
}

/// A report of a replay in its own thread.
#[derive(Debug)]
pub(crate) enum RunUpdate {
    /// A job changed.
    Job(TimedUpdate),
    /// Everything before this time was reported.
    Until(UnixMillis),
    /// The last one.
    Finished(Result<Replayed>),
}

impl From<ReplayUpdate<'_>> for RunUpdate {
    fn from(update: ReplayUpdate<'_>) -> Self {
        match update {
            ReplayUpdate::Job(change) => Self::Job(change.clone()),
            ReplayUpdate::Until(at) => Self::Until(at),
        }
    }
}

/// A manager and its GPUs. Drop ends all of it: jobs, manager, GPUs, files.
#[derive(Debug)]
pub(crate) struct EmulatedManager {
    folder: TempDir,
    machine: Machine,
    manager: Child,
}

impl EmulatedManager {
    /// Starts a manager with these rules on GPUs with this time factor, and waits until it sees them idle.
    pub(crate) fn start(servers: &Servers, speed: f64, rules: &Settings, record: Option<&Path>) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let base = base();
        let folder = tempfile::Builder::new().prefix("carma-emulated-").tempdir_in(&base);
        let folder = folder.with_context(|| format!("cannot make a folder in {}", base.display()))?;
        let places = Places::at(folder.path());
        fs::write(&places.configuration, toml::to_string(rules)?).context("cannot write the configuration")?;
        let log = File::create(log(folder.path())).context("cannot write a log")?;
        let machine = Machine::create(&folder.path().join("machine"), servers, speed, Some(&program))?;
        let mut command = Command::new(program);
        command.arg("up").arg("--state").arg(folder.path()).env(VARIABLE, machine.folder());
        if let Some(file) = record {
            command.arg("--record").arg(file);
        }
        // Its own process group: a terminal's signals reach only us, and we stop the manager in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let manager = command.spawn().context("cannot start a manager").inspect_err(|_| drop(Machine::remove(machine.folder())))?;
        let mut started = Self { folder, machine, manager };
        started.wait_for_gpus()?;
        Ok(started)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection to its manager.
    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::at(Address::Socket(Places::at(self.folder.path()).socket))?)
    }

    /// Replays jobs in a thread.
    pub(crate) fn replay(&self, planned: Vec<Planned>, speed: f64, report: impl Fn(RunUpdate) + Send + 'static) -> Result<()> {
        let mut client = self.client()?;
        let replays = move || {
            let replayed = replay(&mut client, &planned, speed, |update| report(update.into()));
            report(RunUpdate::Finished(replayed));
        };
        thread::Builder::new().name("replay".to_owned()).spawn(replays)?;
        Ok(())
    }

    fn wait_for_gpus(&mut self) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        let open = |mut client: Client| client.gpus().is_ok_and(|gpus| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.closed.is_empty()));
        while !self.client().is_ok_and(open) {
            if let Some(status) = self.manager.try_wait()? {
                let text = fs::read_to_string(log(self.folder.path())).unwrap_or_default();
                bail!("a manager ended at once ({status}): {}", text.trim().trim_start_matches("carma: "));
            }
            ensure!(Instant::now() < end, "a manager did not start within {} s", TIMEOUT.as_secs());
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Cancels all jobs and stops the manager; it accepts no more jobs.
    fn end_all(&self) -> Result<()> {
        let mut client = self.client()?;
        client.shutdown(Shutdown { drain: true })?;
        for job in client.whole_queue(None)?.jobs {
            // It may have ended by itself.
            let _ = client.act(&job.id.0.to_string(), &JobAction::Cancel);
        }
        Ok(())
    }
}

impl Drop for EmulatedManager {
    fn drop(&mut self) {
        // A manager without jobs ends at once; later requests then fail.
        let _ = self.end_all();
        let end = Instant::now() + TIMEOUT;
        while matches!(self.manager.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(POLL_INTERVAL);
        }
        let _ = self.manager.kill();
        let _ = self.manager.wait();
        // Remaining processes on the GPUs end with the GPUs.
        let _ = Machine::remove(self.machine.folder());
    }
}

/// In memory, unless TMPDIR names another folder.
fn base() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if std::env::var_os("TMPDIR").is_none() && memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("manager.log")
}
