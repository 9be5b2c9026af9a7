//! Other job queues for one machine, each with its own daemon and folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Contender, share_out, until};

/// pueue, with a daemon that keeps its state in a folder.
pub(super) struct Pueue {
    daemon: Child,
    configuration: PathBuf,
}

impl Pueue {
    /// Unset where it is not installed.
    pub(super) fn start(folder: &Path, at_once: u32) -> Option<Self> {
        let configuration = folder.join("pueue.yml");
        let (home, socket) = (folder.display(), folder.join("socket"));
        let text = format!(
            "shared:\n  pueue_directory: {home}\n  runtime_directory: {home}\n  use_unix_socket: true\n  unix_socket_path: {}\n",
            socket.display()
        );
        fs::write(&configuration, text).unwrap();
        let daemon = quiet(Command::new("pueued").arg("-c").arg(&configuration)).spawn().ok()?;
        let pueue = Self { daemon, configuration };
        until(Duration::from_millis(20), || pueue.client(&["parallel", &at_once.to_string()]));
        Some(pueue)
    }

    fn client(&self, words: &[&str]) -> bool {
        quiet(Command::new("pueue").arg("-c").arg(&self.configuration).args(words)).status().is_ok_and(|status| status.success())
    }
}

impl Contender for Pueue {
    fn name(&self) -> &'static str {
        "pueue add, 16 at a time"
    }

    fn guarantees(&self) -> &'static str {
        "the queue is a file; jobs are children of the daemon"
    }

    fn submit(&self, jobs: usize, command: &str) {
        share_out(jobs, |_| assert!(self.client(&["add", "--", command])));
    }
}

impl Drop for Pueue {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// task-spooler: its clients wait for their turn and run the jobs themselves; nothing is stored.
pub(super) struct TaskSpooler {
    folder: PathBuf,
}

impl TaskSpooler {
    /// Unset where it is not installed.
    pub(super) fn start(folder: &Path, at_once: u32) -> Option<Self> {
        let spooler = Self { folder: folder.to_owned() };
        spooler.client(&["-S", &at_once.to_string()]).then_some(spooler)
    }

    fn client(&self, words: &[&str]) -> bool {
        let mut command = Command::new("tsp");
        // Its output files are not needed.
        command.args(words).env("TS_SOCKET", self.folder.join("socket")).env("TMPDIR", &self.folder);
        quiet(&mut command).status().is_ok_and(|status| status.success())
    }
}

impl Contender for TaskSpooler {
    fn name(&self) -> &'static str {
        "tsp, 16 at a time"
    }

    fn guarantees(&self) -> &'static str {
        "nothing is stored or supervised: the queue is in memory, and each client runs its own job"
    }

    fn submit(&self, jobs: usize, command: &str) {
        share_out(jobs, |_| assert!(self.client(&["sh", "-c", command])));
    }
}

impl Drop for TaskSpooler {
    fn drop(&mut self) {
        self.client(&["-K"]);
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
