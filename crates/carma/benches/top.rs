//! The load of `carma top` on a tmux terminal: 64 GPUs, a queue of 1,000 jobs, and a key that is held down so that it redraws as
//! often as possible.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use carma_bench::processor_time;
use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{JobAction, Shutdown, Submission};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use tempfile::TempDir;

const GPUS: u32 = 64;
const JOBS: u32 = 1000;
/// Duration of each measurement.
const WATCHED: Duration = Duration::from_secs(20);
/// Interval of key presses: more often than redraws.
const KEY: Duration = Duration::from_millis(50);

/// A manager with a GPU for some of its jobs, and a terminal.
struct Stage {
    folder: TempDir,
    machine: Machine,
    manager: Child,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_carma"));
        let machine =
            Machine::create(&folder.path().join("gpus"), &format!("{GPUS}xA100-40GB").parse().unwrap(), 1.0, Some(program)).unwrap();
        let mut up = Command::new(program);
        up.args(["up", "--state"]).arg(folder.path().join("state")).env(VARIABLE, machine.folder());
        let manager = up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let stage = Self { folder, machine, manager };
        until(|| stage.places().socket.exists() && Client::at(stage.address()).is_ok());
        stage
    }

    fn places(&self) -> Places {
        Places::at(&self.folder.path().join("state"))
    }

    fn address(&self) -> Address {
        Address::Socket(self.places().socket)
    }

    /// One array of jobs that each hold an exclusive GPU.
    fn fill(&self) {
        let words = ["sleep", "100000"].map(str::to_owned).to_vec();
        let mut job = JobRequest { name: Some("sleeper".to_owned()), ..JobRequest::new(JobCommand::Program(words), "/") };
        job.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        job.resources.exclusive = true;
        let mut client = Client::at(self.address()).unwrap();
        client.submit(&Submission { job, array: Some((0..JOBS).collect()), parameters: Vec::new() }).unwrap();
        until(|| client.status().unwrap().jobs.running == u64::from(GPUS));
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.path().join("tmux")).args(["-f", "/dev/null"]).args(words).env_remove("TMUX");
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color").env("CARMA_SOCKET", self.places().socket);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
        // Where nothing runs any more, it ends by itself; its jobs are one array, which has the number of its first.
        if let Ok(mut client) = Client::at(self.address()) {
            let _ = client.shutdown(Shutdown { drain: true });
            let _ = client.act("1", &JobAction::Cancel);
        }
        let _ = self.manager.wait();
        let _ = Machine::remove(self.machine.folder());
    }
}

fn main() {
    if !Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("not measured: it needs tmux");
        return;
    }
    let stage = Stage::new();
    stage.fill();
    println!("carma top with {GPUS} GPUs and {JOBS} jobs, in percent of a core:");
    for (width, height) in [("80", "24"), ("200", "60")] {
        stage.tmux(&["new-session", "-d", "-x", width, "-y", height, env!("CARGO_BIN_EXE_carma"), "top"]);
        until(|| stage.tmux(&["capture-pane", "-p"]).contains("sleeper"));
        let pid: u32 = stage.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
        let idle = share_of_a_core(pid, || sleep(KEY));
        let busy = share_of_a_core(pid, || {
            stage.tmux(&["send-keys", "Down"]);
            sleep(KEY);
        });
        println!("  {width}x{height}: {idle:.2} % as it is, {busy:.2} % with a key held down");
        stage.tmux(&["kill-session"]);
    }
}

/// The load of a process while an action is repeated.
fn share_of_a_core(pid: u32, mut meanwhile: impl FnMut()) -> f64 {
    let (before, began) = (processor_time(pid), Instant::now());
    while began.elapsed() < WATCHED {
        meanwhile();
    }
    processor_time(pid).saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0
}

fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited in vain");
        sleep(Duration::from_millis(50));
    }
}
