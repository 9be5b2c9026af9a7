//! A manager in its own process: started, killed, and restarted on the same state.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use carma_core::{AttemptId, JobId, Signal};
use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{JobDetail, Submission};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::supervise::{AttemptFolder, AttemptState, find};
use tempfile::TempDir;

use super::lab::{program, until};

/// Emulated GPUs, and their time factor.
pub(super) type Gpus<'a> = Option<(&'a str, f64)>;

pub(super) struct ManagerProcess {
    folder: TempDir,
    pub(super) machine: Option<Machine>,
    process: Option<Child>,
    variables: Vec<(&'static str, OsString)>,
    /// The command line that it is the end of.
    wrapper: Vec<String>,
    /// The program that it is: this version, unless a test replaces it.
    program: PathBuf,
}

impl ManagerProcess {
    /// State for a manager with this configuration, which is not started yet.
    pub(super) fn stopped(gpus: Gpus<'_>, configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("carma.toml"), configuration).unwrap();
        let create =
            |(gpus, speed): (&str, f64)| Machine::create(&folder.path().join("gpus"), &gpus.parse().unwrap(), speed, Some(program()));
        let machine = gpus.map(create).transpose().unwrap();
        let program = program().to_owned();
        Self { folder, machine, process: None, variables: Vec::new(), wrapper: Vec::new(), program }
    }

    /// A manager that answers.
    pub(super) fn new(gpus: Gpus<'_>, configuration: &str) -> Self {
        let mut up = Self::stopped(gpus, configuration);
        up.start();
        up
    }

    /// Sets an environment variable for its next start.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }

    /// Its next start is by a parent that ignores these signals.
    pub(super) fn ignore(&mut self, signals: &str) {
        self.run_under(vec!["env".to_owned(), format!("--ignore-signal={signals}")]);
    }

    /// Its next start is at the end of this command line.
    pub(super) fn run_under(&mut self, wrapper: Vec<String>) {
        self.wrapper = wrapper;
    }

    /// Its next start is of this program.
    pub(super) fn run_as(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// The command that starts it.
    pub(super) fn command(&self) -> Command {
        let mut words = self.wrapper.iter().map(AsRef::as_ref).chain([self.program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        // A relative path, as users write it.
        command.current_dir(self.folder()).args(["up", "--state", "state", "--config"]).arg(self.folder().join("carma.toml"));
        match &self.machine {
            Some(machine) => command.env(VARIABLE, machine.folder()),
            None => command.arg("--no-gpus"),
        };
        // An allocation of the tests themselves does not apply to emulated GPUs.
        for name in ["CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"] {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let log = File::options().create(true).append(true).open(self.log()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Starts it, and does not wait until it answers.
    pub(super) fn spawn(&mut self) {
        assert!(self.process.is_none());
        self.process = Some(self.command().spawn().unwrap());
    }

    pub(super) fn start(&mut self) {
        self.spawn();
        self.ready();
    }

    /// Waits until it answers.
    pub(super) fn ready(&mut self) {
        let log = self.log();
        let socket = self.places().socket;
        let process = self.process.as_mut().unwrap();
        until(|| {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", fs::read_to_string(&log).unwrap());
            Client::at(Address::Socket(socket.clone())).ok()?.status().ok().map(drop)
        });
    }

    /// Kills it, as the kernel does when memory is short.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Our own child, which is not reaped yet.
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Waits for the end of a stopping manager; returns whether it succeeded.
    pub(super) fn ended(&mut self) -> bool {
        let mut process = self.process.take().unwrap();
        until(|| process.try_wait().unwrap()).success()
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_some())
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Sends the manager a signal.
    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }

    /// The folder of the test.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the manager keeps its state; it makes this folder itself.
    pub(super) fn state(&self) -> PathBuf {
        self.folder().join("state")
    }

    pub(super) fn places(&self) -> Places {
        Places::at(&self.state())
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder().join("manager.log")
    }

    /// Its log.
    pub(super) fn log_text(&self) -> String {
        fs::read_to_string(self.log()).unwrap()
    }

    pub(super) fn client(&self) -> Client {
        Client::at(self.address()).unwrap()
    }

    pub(super) fn address(&self) -> Address {
        Address::Socket(self.places().socket)
    }

    /// A job without GPUs.
    pub(super) fn shell_job(&self, script: &str) -> JobRequest {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let mut request = JobRequest::new(JobCommand::Program(words), self.folder());
        request.environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        request.resources.gpus = 0;
        request
    }

    pub(super) fn submit(&self, request: JobRequest) -> JobId {
        self.client().submit(&one(request)).unwrap().jobs[0]
    }

    /// Waits until a job has ended.
    pub(super) fn wait_until_done(&self, job: JobId) -> JobDetail {
        let mut client = self.client();
        until(|| client.job(&job.0.to_string()).ok().filter(|detail| detail.outcome().is_some()))
    }

    /// The folders of all attempts that were ever started.
    pub(super) fn attempts(&self) -> Vec<AttemptFolder> {
        let numbered = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        let state = self.state();
        let attempts = state.join("attempts");
        let of_job = |job: u64| {
            let numbers = numbered(&attempts.join(job.to_string()));
            numbers.into_iter().map(move |number| AttemptId { job: JobId(job), number: number.try_into().unwrap() })
        };
        numbered(&attempts).into_iter().flat_map(of_job).map(|attempt| AttemptFolder::of(&state, attempt)).collect()
    }
}

impl Drop for ManagerProcess {
    fn drop(&mut self) {
        self.kill();
        for folder in self.attempts() {
            if let Ok(AttemptState::Running(supervised)) = find(&folder) {
                let _ = supervised.signal(Signal::Kill);
            }
        }
        if let Some(machine) = &self.machine {
            let _ = Machine::remove(machine.folder());
        }
    }
}

pub(super) fn one(job: JobRequest) -> Submission {
    Submission::from(job)
}
