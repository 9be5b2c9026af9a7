//! The launch server of a manager: it dies with it, is started again, and stays the manager's version.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use carma_core::Outcome;
use rustix::process::{Pid, Signal, kill_process};

use super::lab::{program, until};
use super::up::ManagerProcess;

/// The launch server of a manager, if it runs.
fn launch_server(manager: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{manager}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children = children.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>());
    children.into_iter().find(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == "carma\0launch-server\0"))
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    until(|| carma_gpu::process_started(pid).is_none().then_some(()));
}

#[test]
fn the_launch_server_ends_with_a_killed_manager() {
    let mut up = ManagerProcess::new(None, "");
    let go = up.folder().join("go");
    let job = up.submit(up.shell_job(&format!("until test -e {}; do sleep 0.05; done", go.display())));
    let server = until(|| launch_server(up.pid()));
    until(|| (!up.attempts().is_empty()).then_some(()));
    up.kill();
    until(|| carma_gpu::process_started(server).is_none().then_some(()));
    up.start();
    fs::write(go, "").unwrap();
    let done = up.wait_until_done(job);
    assert_eq!((done.outcome(), done.attempts.len()), (Some(&Outcome::Succeeded), 1));
}

#[test]
fn a_killed_launch_server_restarts_from_the_same_program() {
    let mut up = ManagerProcess::stopped(None, "");
    let installed = up.folder().join("carma");
    fs::copy(program(), &installed).unwrap();
    up.run_as(&installed);
    up.start();
    let first = up.submit(up.shell_job("true"));
    assert_eq!(up.wait_until_done(first).outcome(), Some(&Outcome::Succeeded));
    let server = until(|| launch_server(up.pid()));
    // As a package does it: the running manager keeps its file.
    let other = up.folder().join("other");
    fs::write(&other, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
    fs::rename(other, installed).unwrap();
    kill(server);
    let second = up.submit(up.shell_job("true"));
    assert_eq!(up.wait_until_done(second).outcome(), Some(&Outcome::Succeeded));
    assert!(until(|| launch_server(up.pid())) != server);
}
