//! A manager with its own emulated GPUs, in a temporary folder.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use carma_core::Settings;
use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{JobAction, Shutdown};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_sim::Servers;
use tempfile::TempDir;

/// Timeout for the start or the end of a manager.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A manager and its GPUs. Drop ends all of it: jobs, manager, GPUs, files.
#[derive(Debug)]
pub(super) struct DemoManager {
    folder: TempDir,
    machine: Machine,
    manager: Child,
}

impl DemoManager {
    /// Starts a manager with these rules on GPUs with this time factor, and waits until it sees them idle.
    pub(super) fn start(servers: &Servers, speed: f64, rules: &Settings, record: Option<&Path>) -> Result<Self> {
        let program = std::env::current_exe().context("cannot say which program this is")?;
        let base = base();
        let folder = tempfile::Builder::new().prefix("carma-demo-").tempdir_in(&base);
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
        // Its own process group: a terminal's signals reach only us, and we end the manager in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let manager = command.spawn().context("cannot start a manager").inspect_err(|_| drop(Machine::remove(machine.folder())))?;
        let mut started = Self { folder, machine, manager };
        started.wait_for_gpus()?;
        Ok(started)
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A connection to its manager.
    pub(super) fn client(&self) -> Result<Client> {
        Ok(Client::at(Address::Socket(Places::at(self.folder.path()).socket))?)
    }

    fn wait_for_gpus(&mut self) -> Result<()> {
        let end = Instant::now() + TIMEOUT;
        let open = |mut client: Client| client.gpus().is_ok_and(|gpus| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.closed.is_empty()));
        while !self.client().is_ok_and(open) {
            if let Some(status) = self.manager.try_wait()? {
                let text = fs::read_to_string(log(self.folder.path())).unwrap_or_default();
                bail!("a manager ended at once ({status}): {}", text.trim().trim_start_matches("carma: "));
            }
            ensure!(Instant::now() < end, "a manager did not begin in {} s", TIMEOUT.as_secs());
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

impl Drop for DemoManager {
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
