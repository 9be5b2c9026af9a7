//! `carma emu train`: refusals and exits.

use std::fs;
use std::process::Stdio;

use super::{Emulated, WORKLOAD, command, text};

#[test]
fn impossible_trainings_are_refused_at_the_start() {
    let emulated = Emulated::up("1xA100-40GB", 500);
    let refused = |arguments: &[&str]| {
        let output = emulated.emu(&[&["train"], arguments].concat());
        assert!(!output.status.success());
        text(&output.stderr)
    };
    assert!(refused(&["--workload", "resnet5"]).ends_with("(`carma catalogue list` has all)\n"));
    let checkpoint = refused(&["--workload", WORKLOAD, "--checkpoint", "/nonexistent/job.json"]);
    assert_eq!(checkpoint, "carma: checkpoint /nonexistent/job.json: No such file or directory (os error 2)\n");
    for (arguments, words) in [
        (["--seconds", "0"], "give more than 0"),
        (["--seconds", "-5s"], "-5 is not a number of seconds from 0 to 9e12"),
        (["--memory", "0"], "give more than 0, in MiB or with a unit"),
        (["--memory", "-1GiB"], "is out of range"),
        (["--epochs", "-1"], "-1 is not in 1..=1000000"),
    ] {
        let message = refused(&[&["--workload", WORKLOAD], &arguments[..]].concat());
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn impossible_machines_are_refused() {
    let refused = |arguments: &[&str]| text(&command("/nonexistent".as_ref()).arg("up").args(arguments).output().unwrap().stderr);
    assert!(
        refused(&["--gpus", "A100"])
            .contains("\"A100\" is not a server description: write 4xA100-40GB; `carma emu kinds` lists the kinds of GPUs")
    );
    assert!(refused(&["--gpus", "2xA100"]).contains("unknown GPU type \"A100\": `carma emu kinds` lists all"));
    assert_eq!(refused(&["--speed", "-1"]), "carma: a speed of -1 is not possible: give one from 0.001 to 100000\n");
}

#[test]
fn finished_work_is_not_repeated() {
    let emulated = Emulated::up("1xA100-40GB", 500);
    let file = emulated.folder.path().join("job.json");
    let arguments = ["--workload", WORKLOAD, "--seconds", "200", "--checkpoint", file.to_str().unwrap()];
    let train = || emulated.train("0", &arguments).wait_with_output().unwrap();
    assert!(text(&train().stdout).contains("\ndone after "));
    let kept = fs::read(&file).unwrap();
    let again = train();
    assert_eq!(
        (again.status.code(), text(&again.stdout)),
        (Some(0), format!("the checkpoint {} is complete: nothing to train\n", file.display()))
    );
    assert_eq!(fs::read(&file).unwrap(), kept);
}

#[test]
fn a_closed_pipe_ends_the_program_as_a_signal_would() {
    let emulated = Emulated::up("1xA100-40GB", 500);
    let mut train = command(emulated.folder.path());
    train.args(["train", "--workload", WORKLOAD, "--seconds", "12h"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut job = train.spawn().unwrap();
    drop(job.stdout.take());
    let ended = job.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(128 + 13), String::new()));
}
