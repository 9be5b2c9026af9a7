//! `carma up --in-slurm`, with an sbatch that starts the script here, and commands as on another host.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::lab::{program, until};

/// Keeps its arguments, and runs the script from its input as a job would be.
const SBATCH: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$FAKE/arguments"
cat > "$FAKE/script"
setsid sh "$FAKE/script" > "$FAKE/log" 2>&1 < /dev/null &
echo "$!;cluster"
"#;

fn carma(folder: &Path, socket: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(program());
    command.args(arguments).current_dir(folder).env("PATH", path).env("FAKE", folder).env("CARMA_SOCKET", socket);
    command.env_remove("XDG_RUNTIME_DIR").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_manager_in_a_job_is_reached_without_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("bin")).unwrap();
    let sbatch = folder.join("bin/sbatch");
    fs::write(&sbatch, SBATCH).unwrap();
    fs::set_permissions(&sbatch, Permissions::from_mode(0o755)).unwrap();
    let (state, socket) = (folder.join("state"), folder.join("state/carma.sock"));
    let up = carma(folder, &socket, &["up", "--in-slurm", "--state", "state", "--", "--partition", "cpu", "--time", "2-0"]);
    let said = text(&up.stdout);
    assert!(up.status.success() && said.contains("of Slurm; its log is "), "{said}{}", text(&up.stderr));
    let arguments = fs::read_to_string(folder.join("arguments")).unwrap();
    assert!(arguments.contains("--time=1-00:00:00") && arguments.ends_with("--partition\ncpu\n--time\n2-0\n"), "{arguments}");
    until(|| state.join("manager.json").exists().then_some(()));
    // The socket of another host is a file that nothing listens on.
    until(|| fs::rename(&socket, folder.join("real.sock")).ok());
    let status = carma(folder, &socket, &["status"]);
    assert!(status.status.success() && text(&status.stdout).contains("https://"), "{}{}", text(&status.stdout), text(&status.stderr));
    let submitted = carma(folder, &socket, &["submit", "--gpus", "0", "--hold", "--", "true"]);
    assert!(submitted.status.success(), "{}", text(&submitted.stderr));
    // Another certificate, or another token, is not accepted.
    let file = state.join("manager.json");
    let good = fs::read_to_string(&file).unwrap();
    let mut contact: serde_json::Value = serde_json::from_str(&good).unwrap();
    contact["token"] = "0".repeat(64).into();
    fs::write(&file, contact.to_string()).unwrap();
    let refused = text(&carma(folder, &socket, &["queue"]).stderr);
    assert!(refused.contains("this token is not known"), "{refused}");
    fs::write(&file, &good).unwrap();
    let other = folder.join("other");
    fs::create_dir(&other).unwrap();
    carma_manager::contact::ListenSettings::new(&other).unwrap();
    contact["certificate"] = fs::read_to_string(other.join("network/certificate.pem")).unwrap().into();
    fs::write(&file, contact.to_string()).unwrap();
    let refused = text(&carma(folder, &socket, &["queue"]).stderr);
    assert!(refused.contains("cannot reach the manager") && refused.contains("certificate"), "{refused}");
    fs::write(&file, &good).unwrap();
    let down = carma(folder, &socket, &["down"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    until(|| (!file.exists()).then_some(()));
}
