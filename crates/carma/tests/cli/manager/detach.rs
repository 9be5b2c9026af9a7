//! `carma up --detach`: the folder of its state is private from the beginning.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::lab::program;

#[test]
fn a_detached_manager_keeps_its_state_private() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("new/state");
    let mut up = Command::new("sh");
    up.args(["-c", "umask 0000; exec \"$@\"", "sh"]).arg(program()).args(["up", "--detach", "--no-gpus", "--state"]).arg(&state);
    let started = up.output().unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let mode = fs::metadata(&state).unwrap().mode() & 0o777;
    let down = Command::new(program()).arg("down").env("CARMA_SOCKET", state.join("carma.sock")).output().unwrap();
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    // Root's manager lets users reach their scripts, and list nothing.
    assert_eq!(mode & 0o066, 0, "{mode:o}");
}
