//! NVIDIA's library without a driver, and the driver of Debian by the functions that its library has.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use carma_core::Outcome;
use carma_emu::Machine;
use carma_testing::{Missing, as_nobody, need, skip};
use serde_json::Value;

use crate::manager::lab::Lab;

fn carma() -> Command {
    Command::new(env!("CARGO_BIN_EXE_carma"))
}

fn run(mut command: Command, arguments: &[&str], variables: &[(&str, &Path)]) -> Output {
    for name in ["CARMA_EMU", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "CARMA_HOST"] {
        command.env_remove(name);
    }
    command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").env("CARMA_SOCKET", "/nonexistent/carma.sock");
    command.envs(variables.iter().copied()).output().unwrap()
}

/// The NVML functions in a library: names in its table of symbols.
fn functions(library: &Path) -> BTreeSet<String> {
    let bytes = fs::read(library).unwrap();
    let names = bytes.split(|byte| *byte == 0).filter(|word| word.starts_with(b"nvml")).filter_map(|word| str::from_utf8(word).ok());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).map(str::to_owned).collect()
}

#[test]
fn nvidias_library_without_a_driver_is_explained() {
    let library = need!(carma_testing::nvidia()).join("lib");
    if Machine::default_folder().join("state").exists() || Path::new("/dev/nvidiactl").exists() {
        skip!(Missing::AbsenceOfGpus);
    }
    // With root's rights NVIDIA's library makes /dev/nvidiactl, also where there is no driver; this machine is to stay as it is.
    let unprivileged = need!(as_nobody(Path::new(env!("CARGO_BIN_EXE_carma")))).get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
    let carma = || {
        let mut command = Command::new("setpriv");
        command.args(&unprivileged);
        command
    };
    let variables = [("LD_LIBRARY_PATH", library.as_path())];
    let words = "NVIDIA's library finds no driver";
    let doctor = run(carma(), &["doctor"], &variables);
    // The doctor breaks its lines.
    let printed = String::from_utf8(doctor.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(doctor.status.success() && printed.contains(words), "{printed}");
    let gpus = run(carma(), &["gpus"], &variables);
    let refused = String::from_utf8(gpus.stderr).unwrap();
    assert!(!gpus.status.success() && refused.contains(words), "{refused}");
    let state = tempfile::tempdir().unwrap();
    fs::set_permissions(state.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let up = run(carma(), &["up", "--state", state.path().join("state").to_str().unwrap()], &variables);
    let refused = String::from_utf8(up.stderr).unwrap();
    assert!(!up.status.success() && refused.contains(words) && refused.contains("carma emu up"), "{refused}");
}

/// Takes the functions out of a machine's library that NVIDIA's library of driver 535 does not have.
fn play_driver_535(machine: &Machine, nvidia: &Path) -> BTreeSet<String> {
    let ours = machine.library();
    let theirs = functions(&nvidia.join("lib/libnvidia-ml.so.1"));
    let missing: BTreeSet<String> = functions(&ours).difference(&theirs).cloned().collect();
    let mut bytes = fs::read(&ours).unwrap();
    for word in bytes.split_mut(|byte| *byte == 0).filter(|word| word.starts_with(b"nvml")) {
        if str::from_utf8(word).is_ok_and(|name| missing.contains(name)) {
            // The loader finds a symbol by a hash of its name, and then compares the name.
            word[0] = b'x';
        }
    }
    fs::remove_file(&ours).unwrap();
    fs::write(&ours, bytes).unwrap();
    missing
}

#[test]
fn every_required_function_is_in_nvidias_library() {
    let nvidia = need!(carma_testing::nvidia());
    let folder = tempfile::tempdir().unwrap();
    let whole =
        Machine::create(folder.path(), &"2xA100-40GB,1xH100-80GB".parse().unwrap(), 1.0, Some(Path::new(env!("CARGO_BIN_EXE_carma"))));
    let whole = whole.unwrap();
    let shown = |arguments: &[&str]| {
        let output = run(carma(), arguments, &[("CARMA_EMU", folder.path())]);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let all: [&[&str]; 5] =
        [&["gpus", "--quick"], &["gpus", "--json", "--quick"], &["mps", "status"], &["mig", "show"], &["doctor", "--json"]];
    let before = all.map(shown);
    let missing = play_driver_535(&whole, &nvidia);
    assert!(missing.contains("nvmlDeviceGetProcessesUtilizationInfo"), "{missing:?}");
    let comparable = |text: &str| match serde_json::from_str::<Value>(text) {
        // Times and energy continue.
        Ok(mut value) => {
            // The doctor's other findings are about this machine.
            if let Some(rows) = value.as_array_mut() {
                rows.retain(|row| row.get("area").is_none_or(|area| area == "gpus"));
            }
            format!("{value:#}").lines().filter(|line| !line.contains("energy") && !line.contains("\"at\"")).collect::<Vec<_>>().join("\n")
        }
        Err(_) => text.to_owned(),
    };
    for (arguments, before) in all.into_iter().zip(&before) {
        assert_eq!(comparable(&shown(arguments)), comparable(before), "{arguments:?}");
    }
    shown(&["mig", "apply", "--gpu", "0", "3g.20gb,2x1g.5gb"]);
    assert!(shown(&["gpus", "--quick"]).contains("3g.20gb"));
}

#[test]
fn a_manager_works_with_the_functions_of_nvidias_library() {
    let nvidia = need!(carma_testing::nvidia());
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    lab.stop();
    play_driver_535(&lab.machine, &nvidia);
    lab.start();
    let job = lab.submit(lab.train("--workload efficientnet_cifar100_bs128_20e --seconds 60"));
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "{:#?}", lab.job(job).events);
    let end = lab.job(job).attempts.remove(0).end.unwrap();
    assert!(end.measured.peaks.iter().all(|peak| peak.0 > 0), "its memory was measured: {:?}", end.measured.peaks);
}
