//! `carma up --in-slurm`: the manager as a small job of Slurm.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use carma_manager::contact;
use carma_manager::places::{Places, create_private};
use clap::Args;

/// What sbatch gets first; later arguments override it. The signal leaves time to stop in order.
const DEFAULTS: [&str; 8] = [
    "--job-name=carma-manager",
    "--nodes=1",
    "--ntasks=1",
    "--cpus-per-task=2",
    "--mem=2G",
    "--time=1-00:00:00",
    "--signal=B:USR1@120",
    "--requeue",
];

/// The batch script. USR1 comes before the time limit: the manager gives its lease back, and the job queues itself again. TERM, from scancel, only stops it.
/// A runtime folder of the login node does not exist on other nodes: without it, the socket is in the state folder.
const SCRIPT: &str = r#"#!/bin/sh
[ -d "$XDG_RUNTIME_DIR" ] || unset XDG_RUNTIME_DIR
again=
COMMAND &
manager=$!
trap 'kill -TERM "$manager"' TERM INT
trap 'again=yes; kill -TERM "$manager"' USR1
while :; do
    wait "$manager"
    code=$?
    kill -0 "$manager" 2>/dev/null || break
done
if [ -n "$again" ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
"#;

#[derive(Debug, Args)]
pub(super) struct SlurmArguments {
    /// Run the manager as a small Slurm job: 2 cores, 2 GiB, one day; then it requeues itself.
    ///
    /// It manages no GPUs of its node, unless the sbatch arguments request some. Commands on other hosts reach it as with --network.
    #[arg(long, conflicts_with = "detach", help_heading = "Slurm")]
    pub(super) in_slurm: bool,
    /// Arguments for sbatch; they override the defaults: `-- --partition cpu --time 7-0`.
    #[arg(last = true, value_name = "SBATCH ARGUMENTS", requires = "in_slurm", help_heading = "Slurm")]
    sbatch: Vec<OsString>,
}

impl SlurmArguments {
    /// Submits the manager.
    pub(super) fn submit(&self, places: &Places) -> Result<()> {
        submit(places, &self.sbatch)
    }
}

fn submit(places: &Places, arguments: &[OsString]) -> Result<()> {
    create_private(&places.state).with_context(|| format!("cannot create {}", places.state.display()))?;
    let log = places.state.join("manager.log");
    // Slurm would let others read it.
    let made = fs::File::options().create(true).append(true).mode(0o600).open(&log);
    made.with_context(|| format!("cannot write {}", log.display()))?;
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let script = script(&program, std::env::args_os().skip(1), arguments)?;
    let mut command = Command::new("sbatch");
    command.arg("--parsable").args(DEFAULTS).arg("--open-mode=append").arg(with_value("--output=", &log)).args(arguments);
    let sbatch = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut sbatch = sbatch.context("cannot run sbatch: is this a host of a Slurm cluster?")?;
    sbatch.stdin.take().context("sbatch has no input")?.write_all(script.as_bytes()).context("cannot give sbatch the script")?;
    let output = sbatch.wait_with_output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "sbatch refused the manager: {}", complaint.trim());
    // A cluster of several adds its name: 12;cluster.
    let answer = String::from_utf8_lossy(&output.stdout);
    let job = answer.trim().split(';').next().unwrap_or_default().to_owned();
    println!("The manager is job {job} of Slurm; its log is {}", log.display());
    let variable =
        if Places::own().state == places.state { String::new() } else { format!(" with CARMA_SOCKET={}", places.socket.display()) };
    println!(
        "Once it runs, commands such as carma queue reach it from every host that has this folder{variable}, by {}",
        contact::file(&places.state).display()
    );
    println!("carma down stops it; scancel {job} does too");
    Ok(())
}

/// The batch script for a command line of ours.
fn script(program: &Path, words: impl Iterator<Item = OsString>, sbatch: &[OsString]) -> Result<String> {
    let own = words.take_while(|word| word != "--").filter(|word| word != "--in-slurm");
    let mut command: Vec<OsString> = std::iter::once(program.into()).chain(own).collect();
    let mut add = |flag: &str| {
        if !command.iter().any(|word| word == flag) {
            command.push(flag.into());
        }
    };
    add("--network");
    // A small job has no GPUs, and jobs that run beside the manager would end with it.
    if !sbatch.iter().any(|word| word.to_string_lossy().contains("gpu")) {
        add("--no-local");
    }
    let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
    let line = shlex::try_join(words.context("the command line is not UTF-8")?).context("the command line cannot be quoted")?;
    Ok(SCRIPT.replace("COMMAND", &line))
}

fn with_value(option: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str], sbatch: &[&str]) -> String {
        let owned = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let script = script(Path::new("/opt/carma"), owned(words).into_iter(), &owned(sbatch)).unwrap();
        script.lines().find_map(|line| line.strip_suffix(" &")).unwrap().to_owned()
    }

    #[test]
    fn the_job_runs_the_same_command_without_gpus_unless_it_has_some() {
        let words = ["up", "--in-slurm", "--state", "my state", "--", "--partition", "cpu"];
        assert_eq!(line(&words, &["--partition", "cpu"]), "/opt/carma up --state 'my state' --network --no-local");
        assert_eq!(line(&["up", "--in-slurm", "--network"], &["--gres=gpu:2"]), "/opt/carma up --network");
    }
}
