//! Two managers on one state, from two hosts that share a file system.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carma_manager::client::{Address, Client};
use rustix::process::{Pid, Signal, kill_process};

use super::lab::{program, until};

/// Seconds after which a lease has run out.
const LEASE: f64 = 1.5;

/// A manager on a host, with its own socket folder and the shared state.
fn start(state: &Path, host: &str) -> Child {
    let log = fs::File::create(log(state, host)).unwrap();
    let mut up = Command::new(program());
    up.args(["up", "--no-gpus", "--state"]).arg(state).env("CARMA_STORE_JOURNAL", "rollback");
    up.env("CARMA_TEST_HOST", format!("{host}/boot-of-{host}")).env("CARMA_TEST_LEASE", LEASE.to_string());
    up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

fn log(state: &Path, host: &str) -> std::path::PathBuf {
    state.with_file_name(format!("{host}.log"))
}

fn said(state: &Path, host: &str) -> String {
    fs::read_to_string(log(state, host)).unwrap()
}

fn answers(state: &Path, host: &str, manager: &Child) {
    // The socket may still be that of a manager that is stopped and never answers.
    until(|| said(state, host).contains("listens on").then_some(()));
    until(|| {
        let status = Client::at(Address::Socket(state.join("carma.sock"))).and_then(|mut client| client.status());
        status.ok().filter(|status| status.pid == manager.id())
    });
}

fn signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

#[test]
fn one_manager_on_two_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut login = start(&state, "login");
    answers(&state, "login", &login);
    // Alive, it is not replaced.
    let mut refused = start(&state, "node");
    assert!(!until(|| refused.try_wait().unwrap()).success());
    let named = format!("in use by the manager on login with process number {}", login.id());
    assert!(said(&state, "node").contains(&named), "{}", said(&state, "node"));
    // A stopped manager loses its lease, and ends as soon as it continues.
    signal(&login, Signal::STOP);
    let mut node = start(&state, "node");
    answers(&state, "node", &node);
    assert!(said(&state, "node").contains("another manager on login had this state"), "{}", said(&state, "node"));
    signal(&login, Signal::CONT);
    assert_eq!(until(|| login.try_wait().unwrap()).code(), Some(1));
    let named = format!("another manager has taken over (the manager on node with process number {})", node.id());
    assert!(said(&state, "login").contains(&named), "{}", said(&state, "login"));
    answers(&state, "node", &node);
    // Killed, it is replaced on its host at once.
    node.kill().unwrap();
    node.wait().unwrap();
    node = start(&state, "node");
    answers(&state, "node", &node);
    assert!(!said(&state, "node").contains("waiting"), "{}", said(&state, "node"));
    // Stopped in order, it is replaced anywhere at once.
    signal(&node, Signal::TERM);
    assert!(until(|| node.try_wait().unwrap()).success());
    let began = Instant::now();
    let mut login = start(&state, "login");
    answers(&state, "login", &login);
    assert!(!said(&state, "login").contains("waiting") && began.elapsed() < Duration::from_secs(20));
    signal(&login, Signal::TERM);
    assert!(until(|| login.try_wait().unwrap()).success());
}
