//! Removing a machine that is in use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::{Emulated, WORKLOAD, command, text, until};

#[test]
fn a_machine_in_use_is_removed_only_by_force_and_jobs_keep_their_checkpoints() {
    let emulated = Emulated::up("1xA100-40GB", 300);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::remove_file(file.path()).unwrap();
    let job = emulated.train("0", &["--workload", WORKLOAD, "--seconds", "12h", "--checkpoint", file.path().to_str().unwrap()]);
    until("some work", || emulated.contexts(job.id()).first().filter(|context| context.work > 300.0).map(drop));
    let refused = text(&emulated.emu(&["down"]).stderr);
    assert!(refused.starts_with("carma: 1 process on the GPUs: stop what is there, or use --force\n"), "{refused}");
    assert!(refused.contains(&format!("  {}  ", job.id())) && refused.contains(" emu train --seed 1 --workload "), "{refused}");
    // Files of daemons, and one that is not the machine's.
    let folder = emulated.folder.path();
    fs::create_dir_all(folder.join("mps/GPU-1/pipes")).unwrap();
    fs::write(folder.join("notes"), "mine").unwrap();
    let mut exporter = command(folder).args(["exporter", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut message = BufReader::new(exporter.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(message.next().unwrap().contains("/metrics"));
    let mut monitor = Command::new(emulated.machine.programs().join("dcgmi"));
    let mut monitor = monitor.args(["dmon", "-e", "1002", "-d", "20"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(monitor.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(rows.next().is_some(), "it has opened the machine");
    let removed = emulated.emu(&["down", "--force"]);
    let says = format!("carma: removed 1 emulated GPU in {}, took the GPUs from 1 process\n", folder.display());
    assert_eq!((removed.status.success(), text(&removed.stderr)), (true, says));
    assert_eq!(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(), ["notes"]);
    let ended = job.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("\nRuntimeError: CUDA error: no CUDA-capable device is detected\n"), "{}", text(&ended.stderr));
    let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
    assert!(kept["done"].as_f64().unwrap() > 200.0, "{kept}");
    let gone = format!("the emulated GPUs in {} were removed", folder.display());
    assert_eq!(message.next().unwrap(), format!("carma: {gone}"));
    assert_eq!(exporter.wait().unwrap().code(), Some(1));
    assert!(rows.last().unwrap().ends_with("Host engine connection invalid/disconnected."));
    let watched = monitor.wait_with_output().unwrap();
    assert!(text(&watched.stderr).contains("emulated GPUs in "), "{}", text(&watched.stderr));
}

#[test]
fn daemons_end_with_their_machine() {
    let emulated = Emulated::up("1xA100-40GB", 1);
    let start =
        || Command::new(env!("CARGO_BIN_EXE_carma")).args(["mps", "start", "--gpu", "0"]).env("CARMA_EMU", emulated.folder.path()).output();
    let started = start().unwrap();
    assert!(started.status.success(), "{}", text(&started.stderr));
    let removed = text(&emulated.emu(&["down"]).stderr);
    assert!(removed.ends_with(", stopped 1 MPS daemon\n"), "{removed}");
    assert!(!emulated.folder.path().exists());
}

#[test]
fn advice_names_the_folder_that_was_named() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("machine");
    let run =
        |arguments: &[&str]| text(&command("/nonexistent".as_ref()).args(arguments).arg("--folder").arg(&folder).output().unwrap().stderr);
    let place = folder.display();
    assert_eq!(run(&["show"]), format!("carma: {place} has no emulated GPUs: `carma emu up --folder {place}` creates them\n"));
    let made = run(&["up", "--gpus", "1xT4-16GB"]);
    assert!(
        made.starts_with(&format!("carma: 1 GPU is emulated in {place}. To use it:\n  eval \"$(carma emu env --folder {place})\"\n")),
        "{made}"
    );
    let again = run(&["up"]);
    assert_eq!(again, format!("carma: {place} already has emulated GPUs: `carma emu down --folder {place}` removes them\n"));
}
