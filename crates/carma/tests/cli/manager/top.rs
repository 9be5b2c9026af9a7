//! `carma top` on a real terminal, that of tmux: what it shows, what its keys do, and that it restores the terminal.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use carma_core::{JobId, Outcome};
use carma_emu::Machine;
use carma_manager::api::JobAction;
use carma_manager::request::{JobCommand, JobRequest};
use carma_testing::{Missing, need};
use rustix::process::{Pid, Signal, kill_process};

use super::lab::{program, until};
use super::up::ManagerProcess;
use crate::carma;

/// A terminal in its own tmux, with a shell.
struct Tmux {
    folder: PathBuf,
    /// Where the manager listens.
    socket: PathBuf,
}

impl Tmux {
    fn new(up: &ManagerProcess) -> Result<Self, Missing> {
        carma_testing::program("tmux")?;
        let this = Self { folder: up.folder().to_owned(), socket: up.places().socket };
        let size = ["new-session", "-d", "-x", "80", "-y", "24", "sh"];
        assert!(this.command().args(["-f", "/dev/null"]).args(size).status().unwrap().success());
        Ok(this)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.join("tmux"));
        command.env_remove("TMUX").env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8").env("PS1", "prompt> ").env("TERM", "xterm-256color");
        command.env("CARMA_SOCKET", &self.socket).env("CARMA", program()).env("HOME", &self.folder);
        command
    }

    /// Starts it; when it has ended, its exit code is on the screen.
    fn start(&self) {
        self.start_as("$CARMA top");
    }

    /// Starts this command in its place.
    fn start_as(&self, top: &str) {
        let pid = self.folder.join("pid");
        self.press(&[&format!("clear; stty -g > ~/modes; sh -c 'echo $$ > {}; exec {top}'; echo left with $?", pid.display()), "Enter"]);
    }

    /// Sends a signal to it.
    fn signal(&self, signal: Signal) {
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.command().arg("send-keys").args(keys).status().unwrap().success());
    }

    fn screen(&self) -> String {
        String::from_utf8(self.command().args(["capture-pane", "-p"]).output().unwrap().stdout).unwrap()
    }

    /// Waits until the screen shows all of this.
    fn shows(&self, words: &[&str]) -> String {
        until(|| Some(self.screen()).filter(|screen| words.iter().all(|words| screen.contains(words))))
    }

    /// Its modes, its screen and its cursor are as they were before it was started.
    fn is_as_it_was(&self) {
        self.press(&["clear; stty -g | cmp - ~/modes; echo compared $?", "Enter"]);
        self.shows(&["compared 0"]);
        let flags = self.command().args(["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&flags.stdout).trim(), "0 1");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Our own server, on its own socket.
        let _ = self.command().arg("kill-server").status();
    }
}

fn train(up: &ManagerProcess, name: &str) -> JobId {
    let script = format!("echo begun; exec {} emu train --workload mnist_bs32 --seconds 100000", program().display());
    let words = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let mut request = JobRequest { name: Some(name.to_owned()), ..JobRequest::new(JobCommand::Program(words), up.folder()) };
    request.environment.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    request.environment.insert("CARMA_EMU".to_owned(), up.machine.as_ref().map(Machine::folder).unwrap().display().to_string());
    up.submit(request)
}

#[test]
fn jobs_appear_are_cancelled_by_keys_and_the_terminal_is_left_as_it_was() {
    let up = ManagerProcess::new(Some(("2xA100-40GB", 10.0)), "");
    let tmux = need!(Tmux::new(&up));
    tmux.start();
    tmux.shows(&["2 GPUs, emulated", "nothing runs and nothing waits"]);
    let job = train(&up, "first-job");
    let screen = tmux.shows(&["first-job", "running", "1 running", "launched (attempt 1)"]);
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    tmux.press(&["l"]);
    tmux.shows(&["Log of job 1", "following", "begun"]);
    tmux.press(&["Escape"]);
    tmux.shows(&["first-job"]);
    assert!(tmux.command().args(["resize-window", "-x", "120", "-y", "30"]).status().unwrap().success());
    until(|| tmux.screen().lines().any(|line| line.chars().count() == 120).then_some(()));
    tmux.press(&["c"]);
    tmux.shows(&["Cancel job 1 \"first-job\"", "y: yes"]);
    tmux.press(&["n"]);
    until(|| (!tmux.screen().contains("y: yes")).then_some(()));
    assert!(up.client().job("1").unwrap().outcome().is_none(), "it was not wanted");
    tmux.press(&["c"]);
    tmux.shows(&["y: yes"]);
    tmux.press(&["y"]);
    tmux.shows(&["nothing runs and nothing waits", "finished"]);
    assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Cancelled));
    tmux.press(&["C-z"]);
    tmux.shows(&["left with"]);
    tmux.is_as_it_was();
    tmux.press(&["clear; fg; echo left again with $?", "Enter"]);
    tmux.shows(&["2 GPUs, emulated", "nothing runs and nothing waits", "q leave"]);
    tmux.press(&["q"]);
    tmux.shows(&["left again with 0"]);
    tmux.is_as_it_was();
}

#[test]
fn top_waits_for_a_restarting_manager_and_restores_the_terminal() {
    let mut up = ManagerProcess::new(None, "");
    let tmux = need!(Tmux::new(&up));
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        tmux.start();
        tmux.shows(&["no GPUs are managed"]);
        tmux.signal(signal);
        tmux.shows(&[&format!("left with {code}")]);
        tmux.is_as_it_was();
    }
    tmux.start();
    tmux.shows(&["nothing runs and nothing waits"]);
    up.kill();
    tmux.shows(&["trying again", "no GPUs are managed"]);
    up.start();
    until(|| (!tmux.screen().contains("trying again")).then_some(()));
    let mut held = up.shell_job("true");
    (held.name, held.schedule.hold) = (Some("after-all".to_owned()), true);
    up.submit(held);
    tmux.shows(&["after-all", "1 held", "submitted"]);
    tmux.press(&["C-c"]);
    tmux.shows(&["left with 0"]);
    tmux.is_as_it_was();
}

#[test]
fn a_missing_terminal_is_explained() {
    let output = carma(&["top"]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "carma: carma top needs a terminal; with --plain, it prints the same as text\n");
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_the_state_and_then_events() {
    let up = ManagerProcess::new(Some(("2xA100-40GB", 10.0)), "");
    let tmux = need!(Tmux::new(&up));
    for (top, gpus) in [("env TERM=dumb LC_ALL=C $CARMA top", "MEMORY GiB"), ("$CARMA top --plain", "GPU s0/gpu1: NVIDIA A100-SXM4-40GB")] {
        tmux.start_as(top);
        tmux.shows(&[gpus, "nothing runs and nothing waits", "Events from now on"]);
        let mut held = up.shell_job("true");
        (held.name, held.schedule.hold) = (Some("later".to_owned()), true);
        let job = up.submit(held);
        let screen = tmux.shows(&[&format!("job {} submitted", job.0)]);
        assert!(screen.is_ascii(), "{screen}");
        up.client().act(&job.0.to_string(), &JobAction::Cancel).unwrap();
        tmux.shows(&[&format!("job {} finished", job.0)]);
        // The signal ends it, and with it the line of the shell.
        tmux.press(&["C-c"]);
        tmux.is_as_it_was();
    }
    tmux.start_as("env LC_ALL=C $CARMA top");
    let drawn = tmux.shows(&["2 GPUs, emulated", "nothing runs and nothing waits", "----"]);
    assert!(drawn.is_ascii(), "{drawn}");
    tmux.press(&["q"]);
    tmux.shows(&["left with 0"]);
}

#[test]
fn plain_text_in_a_file_has_the_state_once() {
    let up = ManagerProcess::new(Some(("2xA100-40GB", 10.0)), "");
    let mut held = up.shell_job("true");
    (held.name, held.schedule.hold) = (Some("later".to_owned()), true);
    up.submit(held);
    let output = Command::new(program()).args(["top", "--plain"]).env("CARMA_SOCKET", up.places().socket).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for fact in ["2 GPUs", "\nmemory in use: 0 MiB of 40.0 GiB\n", "\nID: 1\nname: later\n", "\nstate: held\n"] {
        assert!(text.contains(fact), "{fact:?}: {text}");
    }
}
