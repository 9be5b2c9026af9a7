//! The commands against `carma up` in its own folder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use carma_emu::{Machine, VARIABLE};
use carma_testing::need;
use serde_json::Value;
use tempfile::TempDir;

use super::lab::{program, until};

/// A manager with emulated GPUs, and a user's home.
struct CliManager {
    folder: TempDir,
    machine: Machine,
    manager: Child,
}

impl CliManager {
    fn new() -> Self {
        Self::configured("")
    }

    fn configured(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("carma.toml"), configuration).unwrap();
        let machine = Machine::create(&folder.path().join("machine"), &"2xA100-40GB".parse().unwrap(), 60.0, Some(program())).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let mut up = Command::new(program());
        up.args(["up", "--state"]).arg(folder.path()).env(VARIABLE, machine.folder()).stdin(Stdio::null());
        up.stderr(fs::File::create(folder.path().join("manager.log")).unwrap());
        let manager = up.spawn().unwrap();
        let cli = Self { folder, machine, manager };
        until(|| UnixStream::connect(cli.socket()).ok());
        cli
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("carma.sock")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path().join("home")).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.folder.path().join("home")).env("CARMA_SOCKET", self.socket());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// The output of a command that must succeed.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.prints(arguments)).unwrap()
    }

    /// The error and the exit code of a command that must fail.
    fn fails(&self, arguments: &[&str]) -> (String, i32) {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", text(&output.stdout));
        (text(&output.stderr), output.status.code().unwrap())
    }

    /// Submits a shell script that needs no GPU.
    fn shell(&self, flags: &[&str], script: &str) -> String {
        self.prints(&[&["submit", "--gpus", "0"], flags, &["--", "sh", "-c", script]].concat())
    }
}

impl Drop for CliManager {
    fn drop(&mut self) {
        self.run(&["cancel", "--all"]);
        self.run(&["down", "--drain"]);
        let _ = self.manager.kill();
        let _ = self.manager.wait();
        let _ = Machine::remove(self.machine.folder());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_job_is_submitted_awaited_and_shown() {
    let cli = CliManager::new();
    assert_eq!(cli.shell(&["-J", "first"], "echo hello; echo oh >&2; exit 3"), "job 1\n");
    let waited = cli.run(&["wait", "@first"]);
    assert_eq!((text(&waited.stdout).as_str(), waited.status.code()), ("job 1: failed with exit code 3\n", Some(3)));
    assert_eq!(cli.prints(&["logs", "1", "--stdout"]), "hello\n");
    assert_eq!(cli.prints(&["logs", "last", "--stderr"]), "oh\n");
    let shown = cli.prints(&["show", "1"]);
    assert!(shown.starts_with("job 1 \"first\" of ") && shown.contains("ended      failed with exit code 3"), "{shown}");
    assert!(shown.contains("\nlast lines (carma logs --stderr 1)\n  oh\n"), "{shown}");
    assert_eq!(cli.json(&["show", "1", "--json"])["phase"], "done");
    assert!(cli.prints(&["why"]).starts_with("job 1: failed with exit code 3"));
    let history = cli.prints(&["history", "--mine", "--since", "1h"]);
    assert!(history.lines().count() == 2 && history.contains("exit code 3"), "{history}");
    let ended = |outcome| cli.json(&["history", "--outcome", outcome, "--json"]).as_array().unwrap().len();
    assert_eq!(["failed", "oom", "succeeded", "cancelled", "lost", "not-started", "time-limit"].map(ended), [1, 0, 0, 0, 0, 0, 0]);
    assert!(cli.json(&["history", "--json"])[0]["ran"].as_f64().unwrap() > 0.0);
    let table = cli.prints(&["export"]);
    assert!(table.starts_with("job,array,index,name,") && table.lines().nth(1).unwrap().starts_with("1,,,first,"), "{table}");
    assert_eq!(cli.prints(&["export", "--format", "json"]).lines().count(), 1);
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains("sh -c 'echo hello; echo oh >&2; exit 3'"), "{row}");
    assert!(cli.prints(&["energy", "--by", "day"]).starts_with("DAY"));
    let usage = cli.json(&["usage", "--json"]);
    let jobs = &usage["jobs"];
    assert_eq!((&jobs["failed"], &jobs["succeeded"], &jobs["running"]), (&1.into(), &0.into(), &0.into()), "{usage}");
    assert!(cli.prints(&["usage"]).contains("ended      1 job: 0 succeeded, 1 failed, 0 out of memory, 0 stopped\n"));
    assert!(cli.fails(&["usage", "no-such-user"]).0.contains("this host has no user \"no-such-user\""));
    assert!(cli.prints(&["status"]).contains("2 GPUs"));
    assert!(cli.fails(&["show", "99"]).0.contains("job 99 does not exist"));
    assert!(cli.fails(&["hold", "1"]).0.ends_with("carma: job 1 not held\n"));
}

#[test]
fn both_streams_of_a_job_are_printed_in_order() {
    let cli = CliManager::new();
    let script = "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three; sleep 0.2; echo four >&2";
    cli.shell(&["--wait"], script);
    assert_eq!(cli.prints(&["logs"]), "one\ntwo\nthree\nfour\n");
    assert_eq!(cli.prints(&["logs", "-f"]), "one\ntwo\nthree\nfour\n");
    assert_eq!(cli.prints(&["logs", "-n", "2"]), "three\nfour\n");
    assert_eq!(cli.prints(&["logs", "--stderr"]), "two\nfour\n");
    assert_eq!(cli.prints(&["logs", "--stdout", "-n", "1"]), "three\n");
}

#[test]
fn jobs_are_cancelled_by_filters_and_submitted_again() {
    let cli = CliManager::new();
    cli.shell(&["-J", "net-1"], "exit 3");
    assert_eq!(cli.fails(&["wait", "1", "-q"]).1, 3);
    assert_eq!(cli.prints(&["resubmit", "1"]), "1 is submitted again as job 2\n");
    assert_eq!(cli.fails(&["wait", "2", "-q"]).1, 3);
    assert_eq!(cli.json(&["show", "2", "--json"])["request"]["name"], "net-1");
    cli.shell(&["--array", "0-2"], "exit $CARMA_ARRAY_INDEX");
    cli.fails(&["wait", "3", "-q"]);
    assert_eq!(cli.prints(&["resubmit", "--failed", "3"]), "3 is submitted again as jobs 6_1-2\n");
    assert_eq!(cli.fails(&["wait", "6_2", "-q"]).1, 2);
    assert!(cli.fails(&["resubmit", "--failed", "3_0"]).0.contains("none of these jobs failed"));
    cli.shell(&["--hold", "-J", "net-2"], "true");
    cli.shell(&["--hold", "-J", "other", "--array", "1-2"], "true");
    cli.shell(&["-J", "net-3"], "sleep 1000");
    assert_eq!(cli.prints(&["cancel", "--name", "net-*", "--state", "held"]), "cancelled job 8\n");
    assert_eq!(cli.prints(&["cancel", "--name", "oth*"]), "cancelled jobs 9_1-2\n");
    assert_eq!(cli.prints(&["cancel", "--user", &rustix::process::geteuid().as_raw().to_string()]), "cancelled job 11\n");
    cli.fails(&["wait", "11", "-q"]);
    assert!(cli.fails(&["cancel"]).0.contains("required"));
    assert!(cli.fails(&["cancel", "--name", "net-*"]).0.contains("no job was cancelled"));
    let array = cli.prints(&["show", "3"]);
    assert!(array.starts_with("array 3 of ") && array.contains("\n  1 succeeded: 3_0\n  1 failed with exit code 1: 3_1\n"), "{array}");
    assert!(cli.prints(&["show", "3_2"]).starts_with("job 3_2 "));
    assert!(text(&cli.run(&["logs", "3"]).stderr).contains("the first job of the array, 3_0"));
}

#[test]
fn one_job_of_an_array_keeps_its_index_when_it_is_submitted_again() {
    let cli = CliManager::new();
    let home = cli.folder.path().join("home");
    let echo = "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $CARMA_ARRAY_ID $CARMA_ARRAY_INDEX";
    fs::write(home.join("job.sh"), format!("#!/bin/sh\n#SBATCH --array=4-5\n#SBATCH -o out_%A_%a.log\n{echo}\n")).unwrap();
    cli.prints(&["submit", "--gpus", "0", "--wait", "job.sh"]);
    assert_eq!(fs::read_to_string(home.join("out_1_5.log")).unwrap(), "1 5 1 5\n");
    assert_eq!(cli.prints(&["resubmit", "1_5"]), "1_5 is submitted again as job 3_5\n");
    cli.prints(&["wait", "3_5", "-q"]);
    assert_eq!(fs::read_to_string(home.join("out_3_5.log")).unwrap(), "3 5 3 5\n");
}

#[test]
fn a_job_that_can_never_run_here_is_refused() {
    let cli = CliManager::new();
    let (refused, _) = cli.fails(&["submit", "--gpus", "8", "--", "true"]);
    assert!(
        refused.contains("the job can never start: it needs 8 GPUs; a server has at most 2 GPUs")
            && refused.contains("--wait-for-hardware"),
        "{refused}"
    );
    assert!(cli.fails(&["submit", "--mem", "50GiB", "--", "true"]).0.contains("the largest GPU has 40"));
    let planned = cli.run(&["submit", "--dry-run", "--gpus", "9", "--", "true"]);
    let words = text(&planned.stdout);
    assert!(words.contains("It can never start: it needs 9 GPUs") && !words.contains("would take it"), "{words}");
    assert_eq!(planned.status.code(), Some(1), "as the submission would");
    assert!(cli.prints(&["submit", "--gpus", "8", "--wait-for-hardware", "--", "true"]).starts_with("job 1"));
    assert!(cli.fails(&["submit", "--gpus", "0", "--host-mem", "900TiB", "--", "true"]).0.contains("can never start"));
}

#[test]
fn jobs_are_held_changed_released_and_ended() {
    let cli = CliManager::new();
    assert_eq!(cli.shell(&["--hold", "-q", "-J", "kept"], "true"), "1\n");
    assert_eq!(cli.prints(&["set", "@kept", "--priority", "-5", "--time", "90"]), "changed job 1\n");
    let queue = cli.json(&["queue", "--json"]);
    assert_eq!((&queue["jobs"][0]["state"], &queue["jobs"][0]["priority"]), (&"held".into(), &(-5).into()), "{queue}");
    assert_eq!(cli.run(&["wait", "1", "--timeout", "1s"]).status.code(), Some(124));
    assert_eq!(cli.prints(&["release", "1"]), "released job 1\n");
    assert_eq!(cli.prints(&["wait", "1"]), "job 1: succeeded\n");
    assert_eq!(cli.shell(&["--array", "1-3"], "exit $((CARMA_ARRAY_INDEX - 1))"), "array 2 of 3 jobs: 2_1-3\n");
    assert_eq!(cli.fails(&["wait", "last", "--quiet"]).1, 1, "two failed, in different ways");
    assert_eq!(cli.fails(&["wait", "2_2", "--quiet"]).1, 1);
    assert_eq!(cli.fails(&["wait", "2_3", "--quiet"]).1, 2);
    cli.shell(&[], "sleep 1000");
    cli.shell(&["--hold", "--array", "1-2"], "true");
    assert_eq!(cli.prints(&["cancel", "--all"]), "cancelled jobs 5, 6_1-2\n");
    assert_eq!(cli.fails(&["wait", "5", "6", "-q"]).1, 1);
    assert!(!cli.prints(&["queue"]).contains("held"));
}

#[test]
fn the_jobs_of_an_array_have_one_name_everywhere() {
    let cli = CliManager::new();
    cli.shell(&[], "true");
    assert_eq!(cli.shell(&["--hold", "-J", "many", "--array", "5-7"], "exit 1"), "array 2 of 3 jobs: 2_5-7\n");
    assert_eq!(cli.shell(&["--hold", "-q", "--array", "1,3"], "true"), "5_1\n5_3\n");
    assert!(cli.prints(&["why", "2_6"]).starts_with("job 2_6 is held"), "{}", cli.prints(&["why", "2_6"]));
    assert_eq!(cli.prints(&["release", "2_5", "2_6"]), "released jobs 2_5-6\n");
    let waited = cli.run(&["wait", "2_5", "2_6"]);
    assert_eq!(text(&waited.stdout), "job 2_5: failed with exit code 1\njob 2_6: failed with exit code 1\n");
    assert_eq!(cli.prints(&["why", "2_6"]), "job 2_6: failed with exit code 1\n");
    assert_eq!(cli.fails(&["release", "2_6"]).0, "carma: job 2_6: it is over\ncarma: job 2_6 not released\n");
    assert_eq!(cli.prints(&["cancel", "2_7", "5"]), "cancelled jobs 2_7, 5_1, 5_3\n");
    let events = cli.prints(&["export", "--format", "json"]);
    let event = events.lines().filter_map(|job| serde_json::from_str::<Value>(job).ok()).find(|job| job["id"] == 3).unwrap();
    assert_eq!(event["events"][0]["event"]["array"], serde_json::json!({"array": 2, "index": 6}));
    let log = fs::read_to_string(cli.folder.path().join("manager.log")).unwrap();
    assert!(log.contains("launched (attempt 1) job=2_6 attempt=1") && !log.contains("job=3 "), "{log}");
}

#[test]
fn the_configuration_in_force_is_shown_with_its_sources() {
    let cli = CliManager::configured("[admission]\nmargin = 700\n[manager]\noperators = \"\"\n");
    let file = cli.folder.path().join("carma.toml");
    let shown = cli.prints(&["config", "show"]);
    let has = |line: &str| assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    assert!(
        shown.starts_with(&format!("# Values in force in the manager at {}; its file: {}.\n", cli.socket().display(), file.display())),
        "{shown}"
    );
    has(&format!("margin = 700  # {}:2", file.display()));
    has(&format!("operators = \"\"  # {}:4", file.display()));
    has("shared_account = false  # default");
    has("policy = \"carma\"  # preset carma");
    // What the file says counts after a reload only.
    fs::write(&file, "\n\n[admission]\nmargin = 800\n[manager]\noperators = \"\"\n").unwrap();
    assert_eq!(cli.prints(&["config", "show"]), shown);
    cli.prints(&["config", "reload"]);
    assert!(cli.prints(&["config", "show"]).contains(&format!("margin = 800  # {}:4\n", file.display())));
}

#[test]
fn following_and_waiting_report_the_outcome() {
    let cli = CliManager::new();
    let gate = cli.folder.path().join("gate");
    cli.shell(&["--hold"], &format!("echo one; until test -e {}; do sleep 0.02; done; echo two; exit 4", gate.display()));
    let mut follow = cli.command(&["logs", "-f", "last"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    cli.prints(&["release", "1"]);
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "one", "while the job runs");
    fs::write(gate, "").unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["two"]);
    let followed = follow.wait_with_output().unwrap();
    assert!(text(&followed.stderr).ends_with("carma: job 1: failed with exit code 4\n"), "{}", text(&followed.stderr));
    let waited = cli.run(&["submit", "--gpus", "0", "--wait", "--json", "--", "sh", "-c", "exit 6"]);
    assert_eq!((waited.status.code(), text(&waited.stdout).trim()), (Some(6), "{\n  \"jobs\": [\n    2\n  ]\n}"));
}

#[test]
fn an_interactive_job_has_the_callers_terminal() {
    let cli = CliManager::new();
    let mut submit = cli.command(&["submit", "--gpus", "0", "--interactive", "--", "sh"]);
    let mut child = submit.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"test -t 0 && echo $((40 + 2)); exit 5\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains("42\r\n"), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
    cli.shell(&["--wait"], "true");
    assert!(cli.fails(&["attach", "last"]).0.contains("has no terminal"));
    let (refused, _) = cli.fails(&["submit", "--gpus", "0", "--interactive", "--", "sh"]);
    assert!(refused.contains("an interactive job needs input"), "nothing comes from /dev/null: {refused}");
}

#[test]
fn a_code_snapshot_is_unchanged_and_deleted_after_its_job() {
    let cli = CliManager::new();
    let project = cli.folder.path().join("home/project");
    fs::create_dir(&project).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&project).status().unwrap().success());
    fs::write(project.join("word"), "old\n").unwrap();
    let submit = ["submit", "--gpus", "0", "--hold", "--snapshot", "-D", "project", "--", "cat", "word"];
    cli.prints(&submit);
    fs::write(project.join("word"), "new\n").unwrap();
    cli.prints(&["release", "1"]);
    cli.prints(&["wait", "1"]);
    assert_eq!(cli.prints(&["logs", "1"]), "old\n");
    let copies = || fs::read_dir(cli.folder.path().join("home/.local/state/carma/snapshots")).unwrap().count();
    assert_eq!(copies(), 1);
    cli.prints(&submit);
    assert_eq!(copies(), 1, "the first is gone");
}

#[test]
fn draining_forecasts_and_shutdown_work() {
    let mut cli = CliManager::new();
    let forecast = ["submit", "--dry-run", "--mem", "10GiB", "--", "true"];
    assert!(cli.prints(&forecast).contains("It would start now on GPU 0."), "{}", cli.prints(&forecast));
    assert_eq!(cli.prints(&["drain", "0", "s0/gpu1"]), "GPU 0 takes no new jobs\nGPU s0/gpu1 takes no new jobs\n");
    assert!(cli.prints(&forecast).contains("is drained"), "{}", cli.prints(&forecast));
    cli.prints(&["resume", "0"]);
    assert!(cli.json(&["submit", "--dry-run", "--json", "--", "true"])[0]["forecast"]["placement"].is_object());
    let gate = cli.folder.path().join("gate");
    cli.shell(&[], &format!("until test -e {}; do sleep 0.02; done", gate.display()));
    until(|| (cli.json(&["queue", "--json"])["jobs"][0]["state"] == "running").then_some(()));
    let mut down = cli.command(&["down", "--drain"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reports = BufReader::new(down.stderr.take().unwrap()).lines();
    assert_eq!(reports.next().unwrap().unwrap(), "carma: waiting for 1 running job");
    fs::write(gate, "").unwrap();
    assert_eq!(text(&down.wait_with_output().unwrap().stdout), "the manager is down\n");
    assert!(cli.manager.try_wait().unwrap().is_some_and(|status| status.success()));
    let (error, _) = cli.fails(&["queue"]);
    assert!(error.contains("no manager is running: nothing listens at ") && error.contains("start one with `carma up`"), "{error}");
}

#[test]
fn python_submits_waits_and_reads() {
    need!(carma_testing::program("python3"));
    let cli = CliManager::new();
    let mut python = Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/manager/client.py")).current_dir(cli.folder.path());
    python.env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/../../python")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.env("CARMA_SOCKET", cli.socket()).output().unwrap();
    assert_eq!(text(&output.stdout), "all is well\n", "{}", text(&output.stderr));
}
