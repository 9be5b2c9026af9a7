//! The launch server: what it holds, and its death.

use std::fs;
use std::path::Path;

use carma_core::Signal;
use carma_manager::attempt::Exit;
use carma_manager::launch::LaunchError;
use carma_manager::supervise::{AttemptFolder, LaunchServer};

use super::kills::{kill, supervisors};
use super::{Plan, Prepared, attempt, ended, is_there, launch_by, log, program, running, shell, until};

fn pid(server: &LaunchServer) -> i32 {
    server.pid().unwrap().cast_signed()
}

fn open_files(pid: i32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let mut names: Vec<String> = files.filter_map(|file| Some(fs::read_link(file.path()).ok()?.display().to_string())).collect();
    names.sort();
    names
}

#[test]
fn a_killed_launch_server_is_started_again_and_attempts_continue() {
    let state = tempfile::tempdir().unwrap();
    let go = state.path().join("go");
    let server = LaunchServer::new(program());
    let first = launch_by(&server, &state, shell(1, &format!("until test -e {}; do sleep 0.01; done; exit 3", go.display())));
    let killed = pid(&server);
    kill(&[killed]);
    let second = launch_by(&server, &state, shell(2, "exit 4"));
    assert_ne!(pid(&server), killed);
    assert_eq!(ended(&second).exit, Exit::Code(4));
    fs::write(go, "").unwrap();
    assert_eq!(ended(&first).exit, Exit::Code(3));
}

#[test]
fn attempts_outlive_the_launch_server_and_are_signalled() {
    let state = tempfile::tempdir().unwrap();
    let server = LaunchServer::new(program());
    let folder = launch_by(&server, &state, shell(1, "sleep 3600"));
    let process = pid(&server);
    drop(server);
    assert!(!is_there(process), "it ends with its manager");
    running(&folder).signal(Signal::Terminate).unwrap();
    assert_eq!(ended(&folder).exit, Exit::Signal(15));
}

#[test]
fn the_launch_server_inherits_nothing_from_its_manager() {
    let state = tempfile::tempdir().unwrap();
    // A file that a child of this process would inherit.
    let leaked = fs::File::create(state.path().join("leaked")).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let server = LaunchServer::new(program());
    let folder = launch_by(&server, &state, shell(1, "sleep 3600"));
    let process = pid(&server);
    let files = open_files(process);
    let kinds: Vec<&str> = files.iter().filter_map(|file| file.split(':').next()).collect();
    assert_eq!(kinds, ["/dev/null", "/dev/null", "/dev/null", "anon_inode", "socket"], "{files:?}");
    let socket = files.last();
    assert_eq!(fs::read_dir(format!("/proc/{process}/task")).unwrap().count(), 1);
    let environment = fs::read_to_string(format!("/proc/{process}/environ")).unwrap();
    assert!(environment.starts_with("CARMA_TITLE=") && environment.split_terminator('\0').count() == 1, "{environment}");
    let (guard, shim) = supervisors(&folder);
    for supervisor in [guard, shim] {
        let files = open_files(supervisor);
        assert!(!files.iter().any(|file| Some(file) == socket || file.contains("leaked")), "{files:?}");
        let title = fs::read_to_string(format!("/proc/{supervisor}/cmdline")).unwrap();
        assert_eq!(title.trim_end_matches('\0'), format!("carma shim {}", folder.path().display()));
    }
    running(&folder).signal(Signal::Kill).unwrap();
    ended(&folder);
}

#[test]
fn guards_that_ended_leave_no_zombies() {
    let state = tempfile::tempdir().unwrap();
    let server = LaunchServer::new(program());
    let guards = [1, 2, 3].map(|job| {
        let folder = launch_by(&server, &state, shell(job, "true"));
        let guard = supervisors(&folder).0;
        ended(&folder);
        guard
    });
    until(|| guards.into_iter().all(|guard| !Path::new(&format!("/proc/{guard}")).exists()).then_some(()));
}

#[test]
fn an_attempt_without_an_order_says_so_and_leaves_a_log() {
    let state = tempfile::tempdir().unwrap();
    let server = LaunchServer::new(program());
    let folder = AttemptFolder::of(state.path(), attempt(1));
    let prepared = Prepared::new(folder.clone()).unwrap();
    // Another process holds the place of the order.
    fs::create_dir(folder.path().join("exit.json.new")).unwrap();
    let refused = prepared.launch(Plan { order: shell(1, "true"), script: None }, &server).unwrap_err();
    let text = "the shim did not start: cannot supervise: Is a directory (os error 21)";
    assert!(matches!(refused, LaunchError::Server(_)) && refused.to_string() == text, "{refused}");
    assert_eq!(log(&folder.path().join("shim.log")), "cannot supervise: Is a directory (os error 21)\n");
}
