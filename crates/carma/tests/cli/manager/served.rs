//! A manager in its own process, on its own emulated GPUs, used through the command line.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use carma_emu::{Machine, VARIABLE};
use carma_manager::client::{Address, Client};
use carma_manager::places::SOCKET_VARIABLE;
use serde_json::Value;
use tempfile::TempDir;

use super::lab::{program, until};

pub(super) struct Served {
    folder: TempDir,
    machine: Machine,
    manager: Child,
}

impl Served {
    /// Emulated GPUs with this time factor, and a manager with this configuration.
    pub(super) fn start(gpus: &str, speed: f64, configuration: &str) -> Self {
        Self::start_with(gpus, speed, configuration, &[])
    }

    /// A manager that uses no GPUs.
    pub(super) fn without_gpus() -> Self {
        Self::start_with("1xA100-40GB", 1.0, "", &["--no-gpus"])
    }

    fn start_with(gpus: &str, speed: f64, configuration: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::create(&folder.path().join("machine"), &gpus.parse().unwrap(), speed, Some(program())).unwrap();
        fs::write(folder.path().join("carma.toml"), configuration).unwrap();
        let log = fs::File::create(folder.path().join("manager.log")).unwrap();
        let mut command = Command::new(program());
        command.arg("up").arg("--state").arg(folder.path()).arg("--record").arg(folder.path().join("record.jsonl")).args(flags);
        command.env(VARIABLE, machine.folder()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let served = Self { manager: command.spawn().unwrap(), folder, machine };
        until(|| served.carma(&["status"]).status.success().then_some(()));
        served
    }

    pub(super) fn carma(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command with an empty PATH.
    pub(super) fn carma_without_programs(&self, arguments: &[&str]) -> Output {
        self.command(arguments).env("PATH", "/nonexistent").output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env(SOCKET_VARIABLE, self.socket()).env(VARIABLE, self.machine.folder());
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        command
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("carma.sock")
    }

    pub(super) fn client(&self) -> Client {
        Client::at(Address::Socket(self.socket())).unwrap()
    }

    /// The JSON output of a command that must succeed.
    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.carma(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// All events and decisions, once it has ended.
    pub(super) fn record(&mut self) -> PathBuf {
        assert!(self.carma(&["down"]).status.success());
        assert!(self.manager.wait().unwrap().success());
        self.folder.path().join("record.jsonl")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Without their GPUs, jobs end.
        let _ = Machine::remove(self.machine.folder());
        let _ = self.manager.kill();
        let _ = self.manager.wait();
    }
}
