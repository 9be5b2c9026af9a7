//! A manager for the benchmark, used by a pool of connections or by the command line.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use carma_manager::api::{Counts, Shutdown, Submission, Submitted};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};

use super::{Contender, SUBMITTERS, share_out, until};

/// A manager without GPUs, in a folder.
pub(super) struct Manager {
    process: Child,
    socket: PathBuf,
}

impl Manager {
    pub(super) fn start(folder: &Path, configuration: &str) -> Self {
        std::fs::write(folder.join("carma.toml"), configuration).unwrap();
        let mut command = program();
        command.args(["up", "--no-gpus", "--state"]).arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let manager = Self { process, socket: Places::at(folder).socket };
        until(Duration::from_millis(2), || Client::at(Address::Socket(manager.socket.clone())).is_ok());
        manager
    }

    pub(super) fn client(&self) -> Client {
        Client::at(Address::Socket(self.socket.clone())).unwrap()
    }

    /// A carma command for this manager.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = program();
        command.args(words).env_remove("CARMA_HOST").env("CARMA_SOCKET", &self.socket).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until no job is left.
    pub(super) fn wait_until_idle(&self) {
        let mut client = self.client();
        until(Duration::from_millis(5), || client.status().unwrap().jobs == Counts::default());
    }

    /// Stops it; jobs continue.
    pub(super) fn stop(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            self.client().shutdown(Shutdown::default()).unwrap();
            self.process.wait().unwrap();
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.stop();
    }
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_carma"))
}

/// A job without GPUs that a shell runs.
pub(super) fn job(command: &str) -> JobRequest {
    let words = ["sh", "-c", command].map(str::to_owned).to_vec();
    let mut request = JobRequest { environment: std::env::vars().collect(), ..JobRequest::new(JobCommand::Program(words), "/") };
    request.resources.gpus = 0;
    request
}

pub(super) fn submit(client: &mut Client, job: JobRequest, array: Option<Vec<u32>>) -> Submitted {
    client.submit(&Submission { job, array, parameters: Vec::new() }).unwrap()
}

/// What both ways of submitting offer.
const GUARANTEES: &str =
    "each job and each end is synced before it is acknowledged; jobs outlive the manager, and a killed supervisor leaves nothing";

/// Jobs come from a pool of connections, one by one on each.
pub(super) struct Pool(pub(super) Manager);

impl Pool {
    pub(super) fn submit_each(&self, jobs: usize, request: &JobRequest) {
        let pool: Vec<Mutex<Client>> = (0..SUBMITTERS).map(|_| Mutex::new(self.0.client())).collect();
        share_out(jobs, |number| drop(submit(&mut pool[number % SUBMITTERS].lock().unwrap(), request.clone(), None)));
    }
}

impl Contender for Pool {
    fn name(&self) -> &'static str {
        "carma, from a pool of 16 connections"
    }

    fn guarantees(&self) -> &'static str {
        GUARANTEES
    }

    fn submit(&self, jobs: usize, command: &str) {
        self.submit_each(jobs, &job(command));
    }

    fn settle(&self) {
        self.0.wait_until_idle();
    }
}

/// Each job is submitted by its own process.
pub(super) struct Submits(pub(super) Manager);

impl Contender for Submits {
    fn name(&self) -> &'static str {
        "carma submit, 16 at a time"
    }

    fn guarantees(&self) -> &'static str {
        GUARANTEES
    }

    fn submit(&self, jobs: usize, command: &str) {
        let words = ["submit", "--gpus", "0", "--", "sh", "-c", command];
        share_out(jobs, |_| assert!(self.0.command(&words).status().unwrap().success()));
    }

    fn settle(&self) {
        self.0.wait_until_idle();
    }
}
