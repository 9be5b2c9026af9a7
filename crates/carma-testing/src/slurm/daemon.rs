//! The daemons of a cluster, as children of the test.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A running daemon; killed when it is dropped.
#[derive(Debug)]
pub(super) struct Daemon(Child);

impl Daemon {
    /// Starts a daemon in the foreground, with its words in a file: output that a test captures must not stay open.
    pub(super) fn start(mut command: Command, words: &Path) -> io::Result<Self> {
        let words = File::options().create(true).append(true).open(words)?;
        command.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words).spawn().map(Self)
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        // A daemon that has ended needs no signal.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills every process of a cluster and removes its folder, when the cluster is dropped and also when the test process is killed: a shell in a
/// process group of its own waits for the end of its input.
#[derive(Debug)]
pub(super) struct Cleaner(Child);

/// Processes of a cluster have its folder in their environment (`SLURM_CONF`), or are in it, or have its files open, as `slurmstepd` has. What is
/// started meanwhile is found by another round.
const CLEAN: &str = r#"
read -r _
for round in 1 2 3 4 5; do
    found=no
    for process in /proc/[0-9]*; do
        [ "$process" = "/proc/$$" ] || [ "$process" = "/proc/$1" ] && continue
        if grep -qsF "$0" "$process/environ" || ls -l "$process/fd" "$process/cwd" 2>/dev/null | grep -qF " -> $0"; then
            kill -9 "${process#/proc/}" 2>/dev/null && found=yes
        fi
    done
    [ $found = no ] && break
done
rm -rf "$0"
[ -z "$2" ] || find /sys/fs/cgroup -depth -type d -path "*/slurm_$2*" -exec rmdir {} +
"#;

impl Cleaner {
    /// Starts to wait for the end of this process. Control groups of nodes whose names start with the prefix are removed too.
    pub(super) fn start(folder: &Path, prefix: Option<&str>) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let mut shell = Command::new("sh");
        shell.args(["-c", CLEAN]).arg(folder).arg(std::process::id().to_string()).arg(prefix.unwrap_or_default());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().map(Self)
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What the logs in a folder say, for the message of a failure.
pub(super) fn words_of(logs: &Path) -> String {
    let files = fs::read_dir(logs).into_iter().flatten().flatten();
    let end = |text: String| {
        text.lines().rev().take(15).map(|line| format!("  {line}\n")).collect::<Vec<_>>().into_iter().rev().collect::<String>()
    };
    files.filter_map(|file| Some(format!("{}:\n{}", file.path().display(), end(fs::read_to_string(file.path()).ok()?)))).collect()
}
