//! `carma profile` on emulated GPUs, with its results in `carma calibrate`.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use carma_emu::Machine;
use carma_sim::{Catalogue, InterferenceModel, calibrate, read_pairs};
use tempfile::TempDir;

const WORKLOADS: [&str; 3] = ["resnet50_imagenet_bs64", "mobilenet_imagenet_bs64", "efficientnet_imagenet_bs64"];

struct Lab {
    folder: TempDir,
    machine: Machine,
}

impl Lab {
    /// An emulated GPU, and a list of jobs with these lengths in its seconds.
    fn new(speed: f64, workloads: &[&str], seconds: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_carma"));
        let machine = Machine::create(&folder.path().join("machine"), &"1xA100-40GB".parse().unwrap(), speed, Some(program)).unwrap();
        let mut list = String::new();
        for workload in workloads {
            let command = format!("exec {} emu train --workload {workload} --seconds {seconds}", program.display());
            writeln!(list, "[[job]]\nname = {workload:?}\ncommand = {command:?}").unwrap();
        }
        fs::write(folder.path().join("jobs.toml"), list).unwrap();
        Self { folder, machine }
    }

    fn profile(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.args(["profile", "jobs.toml"]).args(arguments).current_dir(self.folder.path());
        // No manager is used.
        command.env("CARMA_EMU", self.machine.folder()).env("CARMA_SOCKET", self.folder.path().join("none"));
        command.env_remove("CARMA_HOST").env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("profile").join(name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Machine::remove(self.machine.folder());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_profile_calibrates_to_the_emulated_interference() {
    let lab = Lab::new(600.0, &WORKLOADS, 900);
    let output = lab.profile(&["--pairs"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), 1 + 3 + 6, "{table}");
    assert_eq!(table.lines().find(|line| line.chars().count() > 80), None, "too wide");
    let measured = Catalogue::from_solo(File::open(lab.file("solo.csv")).unwrap()).unwrap();
    for (_, workload) in measured.iter() {
        let shipped = Catalogue::shipped();
        let known = shipped.get(shipped.find(&workload.name).unwrap());
        assert_eq!(workload.ranks[0].peak, known.ranks[0].peak, "{}", workload.name);
        assert!((workload.ranks[0].smact.get() - known.ranks[0].smact.get()).abs() < 0.25, "{workload:?}");
    }
    let pairs = read_pairs(File::open(lab.file("pairs-streams.csv")).unwrap(), &measured).unwrap().runs;
    // The emulator's model of the same pairs.
    let (shipped, true_model) = (Catalogue::shipped(), InterferenceModel::shipped());
    let known = read_pairs(File::open(lab.file("pairs-streams.csv")).unwrap(), &shipped).unwrap().runs;
    let fitted = calibrate(&pairs, &[], &measured);
    for (pair, known) in pairs.iter().zip(&known) {
        let sides = fitted.model.score_pair(&measured, pair).into_iter().zip(true_model.score_pair(&shipped, known));
        for (fitted, truth) in sides {
            let ratio = fitted.predicted / truth.predicted;
            assert!((0.75..1.33).contains(&ratio), "{ratio} of {truth:?}: {pair:?}");
        }
    }
}

#[test]
fn an_interrupted_profile_continues() {
    let lab = Lab::new(600.0, &WORKLOADS[..2], 300);
    let output = lab.profile(&["--alone"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let refused = lab.profile(&["--pairs"]);
    assert!(text(&refused.stderr).contains("contains results: continue with --resume"), "{}", text(&refused.stderr));
    // The second was not run to its end when we were interrupted.
    let results = lab.file("results.jsonl");
    let first = fs::read_to_string(&results).unwrap().lines().next().unwrap().to_owned();
    fs::write(&results, format!("{first}\n{{\"run\"")).unwrap();
    let resumed = lab.profile(&["--copies", "2", "--modes", "mps", "--resume"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let message = text(&resumed.stderr);
    assert!(message.contains("1/3 ") && message.contains(" left\n"), "{message}");
    let kept = fs::read_to_string(&results).unwrap();
    assert!(kept.starts_with(&first) && kept.lines().count() == 4, "{kept}");
    let crowds = fs::read_to_string(lab.file("crowds-mps.csv")).unwrap();
    assert!(crowds.contains(&format!("{0};{0}", WORKLOADS[1])), "{crowds}");
}
