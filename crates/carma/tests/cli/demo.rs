//! The demo: what two managers show at work, and that they leave nothing behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::stdout;

/// A folder in memory, as the demo uses by itself: a slow disk would delay one of its managers and change the result.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A demo in a hurry, whose files are all in this folder.
fn demo(folder: &TempDir, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
    command.arg("demo").args(arguments).env("TMPDIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Processes that name the folder in their command or environment.
fn users_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap().as_bytes();
    let names = |file: &Path| fs::read(file).is_ok_and(|text| text.windows(folder.len()).any(|part| part == folder));
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let uses = |process: &std::path::PathBuf| ["cmdline", "environ"].iter().any(|file| names(&process.join(file)));
    processes.filter(uses).map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
}

fn assert_nothing_is_left(folder: &TempDir) {
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "files are left");
    // Supervisors of jobs that were told to end may be a moment behind.
    for _ in 0..6000 {
        if users_of(folder.path()).is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(users_of(folder.path()), Vec::<String>::new(), "processes are left");
}

/// The time at the start of a line, in seconds: minutes and seconds, or hours before them.
fn seconds(line: &str) -> Option<u64> {
    let clock = line.split_whitespace().next().filter(|word| word.contains(':'))?;
    clock.split(':').try_fold(0, |sum, part| Some(60 * sum + part.parse::<u64>().ok()?))
}

#[test]
fn the_demo_runs_and_cleans_up() {
    let (folder, elsewhere) = (folder(), tempfile::tempdir().unwrap());
    let log = elsewhere.path().join("events.jsonl");
    let log = log.to_str().unwrap();
    let output = demo(&folder, &["--speed", "240", "--event-log", log]).wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{shown}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(shown.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let row = |name: &str| -> Vec<&str> {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}: {shown}"));
        line[name.len()..].split_whitespace().collect()
    };
    let ratio = |name: &str| -> f64 { row(name)[4].parse().unwrap() };
    assert!(ratio("last job done") < 0.9 && ratio("mean wait") < 0.5 && ratio("energy") < 1.0, "{shown}");
    assert_eq!(row("out of memory"), ["0", "1", "1"], "measured, and predicted: {shown}");
    assert!(shown.contains("sharing: policy carma (the default)"), "{shown}");
    assert!(shown.contains("Job 8 (xception_imagenet_bs128) declared 6.8 GiB and ran out of GPU memory.\nCARMA restarted it "), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.ends_with(" succeeded")).count(), 24, "{shown}");
    let times: Vec<u64> = shown.lines().filter_map(seconds).collect();
    assert!(times.len() > 48 && times.is_sorted(), "lines of both runs are not in order of time: {shown}");
    assert!(stdout(&["replay-log", log]).contains(" events lead to the same decisions; no job is left at "));
    assert_nothing_is_left(&folder);
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing_behind() {
    let folder = folder();
    let mut demo = demo(&folder, &[]);
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let started = lines.by_ref().map(Result::unwrap).filter(|line| line.ends_with(" starts")).take(6).count();
    assert_eq!(started, 6);
    assert!(!users_of(folder.path()).is_empty());
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    let rest = lines.count();
    let output = demo.wait_with_output().unwrap();
    assert!(!output.status.success() && rest < 200);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: stopped; all jobs, managers and emulated GPUs have been removed\n");
    assert_nothing_is_left(&folder);
}
