//! The command line as people use it: the real binary, its output and its exit code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dcgm;
mod emu;
mod estimate;
mod gpus;
mod manager;
mod manual;
mod mps;
mod profile;
mod service;
mod shim;
mod simulations;
mod submit;
mod traces;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn carma(arguments: &[&str]) -> Output {
    // Workloads of whoever runs the tests must not show.
    Command::new(env!("CARGO_BIN_EXE_carma")).args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = carma(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "messages beside the data");
    String::from_utf8(output.stdout).unwrap()
}

/// What a command that fails says; it must print no data.
fn stderr(arguments: &[&str]) -> String {
    let output = carma(arguments);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

/// A command as a user without rights, where the tests can become one: else nothing is tested, and that is said.
fn as_nobody(program: &Path) -> Option<Command> {
    let nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(program);
        command
    };
    let can = rustix::process::geteuid().is_root()
        && nobody("test".as_ref()).arg("-x").arg(program).status().is_ok_and(|tested| tested.success());
    if !can {
        eprintln!("not run: it needs root, setpriv, and {} to be everybody's", program.display());
    }
    can.then(|| nobody(program))
}

fn configuration(directory: &Path, text: &str) -> String {
    let file = directory.join("carma.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_demo_is_the_same_every_time_and_fits_the_terminal() {
    let demo = stdout(&["demo"]);
    insta::assert_snapshot!("demo", demo);
    assert_eq!(demo.lines().find(|line| line.chars().count() > 80), None, "too wide");
    assert_eq!(demo, stdout(&["demo"]));
}

#[test]
fn sharing_beats_exclusive_in_the_demo_by_every_preset() {
    for preset in ["standard", "first", "paper", "aegis"] {
        let demo = stdout(&["demo", "--preset", preset]);
        let ratio = |row: &str| -> f64 {
            let line = demo.lines().find(|line| line.starts_with(row)).unwrap();
            line.split_whitespace().last().unwrap().parse().unwrap()
        };
        assert!(ratio("last job done") < 0.9 && ratio("mean wait") < 0.5, "{preset}: {demo}");
    }
}

#[test]
fn a_demos_event_log_replays() {
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("events.jsonl");
    let log = log.to_str().unwrap();
    stdout(&["demo", "--event-log", log]);
    let replayed = stdout(&["replay-log", log]);
    assert!(replayed.contains(" events lead to the same decisions; of 24 jobs 24 are over at "), "{replayed}");
    let text = fs::read_to_string(log).unwrap();
    fs::write(log, text.replacen("\"promised\":7473", "\"promised\":7474", 1)).unwrap();
    assert!(stderr(&["replay-log", log]).contains("does not replay: line "));
}

#[test]
fn jobs_that_fail_for_good_are_told_apart() {
    let scratch = tempfile::tempdir().unwrap();
    let file = configuration(scratch.path(), "[recovery]\nladder = []\n");
    let demo = stdout(&["demo", "--config", &file]);
    assert!(demo.contains("failed, left out above                  0              1"), "{demo}");
}

#[test]
fn policies_are_listed() {
    insta::assert_snapshot!("policies", stdout(&["policies"]));
}

#[test]
fn the_configuration_is_shown_with_every_key() {
    let shown = stdout(&["config", "show"]);
    insta::assert_snapshot!("config-show", shown);
    let scratch = tempfile::tempdir().unwrap();
    let file = configuration(scratch.path(), &shown);
    assert_eq!(stdout(&["config", "show", "--config", &file]), shown, "what is shown can be read back");
    assert_eq!(stdout(&["config", "check", &file]), format!("{file} is fine\n"));
}

#[test]
fn flags_override_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let file = configuration(scratch.path(), "preset = \"paper\"\npolicy = \"lug\"\n");
    let shown = stdout(&["config", "show", "--config", &file, "--policy", "or-ff"]);
    assert!(shown.contains("preset = \"paper\"") && shown.contains("policy = \"or-ff\""), "{shown}");
}

#[test]
fn bad_configuration_is_refused_with_key_and_range() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |text: &str| stderr(&["config", "check", &configuration(scratch.path(), text)]);
    let two = refused("policy = \"best\"\n[admission]\nmargin = -1\n");
    assert!(two.contains("policy = \"best\" is not allowed: give one of exclusive, rr,"), "{two}");
    assert!(two.contains("admission.margin = -1 is not allowed: give 0 to 1048576 MiB"), "{two}");
    let typo = refused("[admission]\nmargn = 1\n");
    assert!(typo.contains("unknown field `margn`, expected one of `margin`"), "{typo}");
    assert!(refused("preset = \"carma\"").contains("expected one of `standard`, `first`, `paper`, `aegis`"));
    assert!(stderr(&["config", "check", "/nonexistent.toml"]).starts_with("carma: cannot read /nonexistent.toml: "));
    assert!(stderr(&["demo", "--policy", "best"]).contains("policy = \"best\" is not allowed"));
    assert!(stderr(&["demo", "--preset", "carma"]).contains("possible values: standard, first, paper, aegis"));
}
