//! Skips as `make test` sees them: this binary again, with tests that skip themselves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::process::{Command, Output};

use carma_testing::{Missing, need, skip};

/// Runs the tests below whose names contain a word.
fn run(word: &str, ci: &str) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("skipped");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--test-threads=1", word]).env("CARMA_SKIPPED", &file).env("CI", ci);
    let output = command.output().unwrap();
    (output, fs::read_to_string(file).unwrap_or_default())
}

#[test]
fn skips_are_recorded_with_test_and_reason() {
    let (output, recorded) = run("skips_itself", "");
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = recorded.lines().collect();
    assert_eq!(
        lines,
        [
            "skip::skips_itself_for_a_program: no-such-program is not installed",
            "skip::skips_itself_for_published_data: CARMA_DATA names no folder with published measurements",
        ]
    );
}

#[test]
fn ci_fails_for_what_it_should_have() {
    let (output, recorded) = run("skips_itself_for_a_program", "1");
    assert!(!output.status.success() && recorded.is_empty());
    assert!(String::from_utf8_lossy(&output.stdout).contains("must run under CI: no-such-program is not installed"), "{output:?}");
    let (output, recorded) = run("skips_itself_for_published_data", "1");
    assert!(output.status.success() && recorded.lines().count() == 1, "{output:?}");
}

#[test]
#[ignore = "part of another test"]
fn skips_itself_for_published_data() {
    skip!(Missing::PublishedData);
}

#[test]
#[ignore = "part of another test"]
fn skips_itself_for_a_program() {
    need!(carma_testing::program("no-such-program"));
    panic!("there is no such program");
}
