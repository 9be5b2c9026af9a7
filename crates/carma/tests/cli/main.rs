//! The command line as people use it: the real binary, its output and its exit code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dcgm;
mod demo;
mod emu;
mod estimate;
mod gpus;
mod manager;
mod manual;
mod mps;
mod nvidia;
mod pilots;
mod profile;
mod progress;
mod releases;
mod service;
mod shim;
mod simulations;
mod slurm;
mod submit;
mod traces;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn carma(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
    // Ignore the workloads and the locale of the user who runs the tests.
    command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").env("LC_ALL", "C.UTF-8").env_remove("CARMA_PLAIN");
    command.output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = carma(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "messages beside the data");
    String::from_utf8(output.stdout).unwrap()
}

/// The error of a command that must fail; it prints no data.
fn stderr(arguments: &[&str]) -> String {
    let output = carma(arguments);
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn configuration(directory: &Path, text: &str) -> String {
    let file = directory.join("carma.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn policies_are_listed() {
    insta::assert_snapshot!("policies", stdout(&["policies"]));
}

#[test]
fn the_configuration_is_shown_with_every_key() {
    let shown = stdout(&["config", "show", "--policy", "carma"]);
    insta::assert_snapshot!("config-show", shown);
    let scratch = tempfile::tempdir().unwrap();
    let file = configuration(scratch.path(), &shown);
    let values = |text: &str| text.parse::<toml::Table>().unwrap();
    assert_eq!(values(&stdout(&["config", "show", "--config", &file])), values(&shown), "what is shown can be read back");
    assert_eq!(stdout(&["config", "check", &file]), format!("{file} is fine\n"));
}

/// The tables of docs/configuration.md are the program's own; `INSTA_UPDATE=always` renews them.
#[test]
fn the_document_lists_the_keys_of_the_program() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = fs::read_to_string(&document).unwrap();
    let tables = stdout(&["config", "reference"]);
    let mut renewed = String::new();
    let mut rest = text.as_str();
    for table in tables.split("\n\n") {
        let (before, after) = rest.split_once("<!-- carma config reference -->\n").expect("a mark before each table");
        let (_, after) = after.split_once("<!-- end -->\n").expect("a mark behind each table");
        renewed.extend([before, "<!-- carma config reference -->\n", table.trim_end(), "\n<!-- end -->\n"]);
        rest = after;
    }
    renewed += rest;
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&document, &renewed).unwrap();
    } else {
        assert!(renewed == text, "docs/configuration.md is out of date: run this test with INSTA_UPDATE=always");
    }
}

#[test]
fn flags_override_the_file() {
    let scratch = tempfile::tempdir().unwrap();
    let file = configuration(scratch.path(), "preset = \"paper\"\npolicy = \"lug\"\n");
    let shown = stdout(&["config", "show", "--config", &file, "--policy", "or-ff"]);
    assert!(shown.contains(&format!("preset = \"paper\"  # {file}:1\n")), "{shown}");
    assert!(shown.contains("policy = \"or-ff\"  # flag --policy\n"), "{shown}");
}

#[test]
fn bad_configuration_is_refused_with_key_and_range() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |text: &str| stderr(&["config", "check", &configuration(scratch.path(), text)]);
    let two = refused("policy = \"best\"\n[admission]\nmargin = -1\n");
    assert!(two.contains("carma.toml:1: policy = \"best\" is not allowed: give one of carma, exclusive, rr,"), "{two}");
    assert!(two.contains("carma.toml:3: admission.margin = -1 is not allowed: give a whole number from 0 to 1048576 MiB"), "{two}");
    let typo = refused("[admission]\nmargn = 1\n");
    assert!(typo.contains("carma.toml:2: unknown key admission.margn: did you mean admission.margin?"), "{typo}");
    assert!(refused("preset = \"karma\"").contains("give one of carma, standard, first, paper, aegis"));
    let three = refused("[queue]\norder = \"fastest\"\n[manager.logs]\nsize = 0\nsise = 3\n");
    assert_eq!(three.lines().filter(|line| line.contains("carma.toml:")).count(), 3, "{three}");
    assert!(refused("[manager]\noperators = \"no-such-group\"\n").contains("carma.toml:2: manager.operators: this host has no group"));
    let both = refused("policy = \"best\"\n[manager]\noperators = \"no-such-group\"\n");
    assert!(both.contains("carma.toml:1: policy") && both.contains("carma.toml:3: manager.operators"), "{both}");
    assert!(String::from_utf8_lossy(&carma(&["config", "check"]).stdout).contains("carma.toml"), "the file of the manager is checked");
    assert!(stderr(&["config", "check", "/nonexistent.toml"]).starts_with("carma: there is not a file /nonexistent.toml"));
    assert!(stderr(&["demo", "--policy", "best"]).contains("policy = \"best\" is not allowed"));
    assert!(stderr(&["demo", "--preset", "karma"]).contains("possible values: carma, standard, first, paper, aegis"));
}
