//! Helpers under a shim: estimators, and the removal of containers.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use carma_manager::attempt::Order;
use carma_manager::launch::{HelperError, Plan, remove_container, run_helper};
use carma_manager::supervise::{AttemptFolder, LaunchServer};

use super::kills::{family, kill, lost, supervisors};
use super::{TIMEOUT, is_there, launch, launch_server, pid_in, program, shell, until};

#[test]
fn output_is_returned_at_once_though_a_process_holds_the_pipe() {
    let state = tempfile::tempdir().unwrap();
    let (script, [_, child, daemon]) = family(&state);
    let ready = format!("while [ ! -s {} ]; do sleep 0.01; done; echo said; echo why >&2; exit 1", daemon.display());
    let order = Order { log_limit: 8192, ..shell(1, &script.replace("sleep 3600; sleep 3600", &ready)) };
    let folder = AttemptFolder::at(state.path().join("aside"));
    let result = run_helper(&folder, Plan { order, script: None }, launch_server(), TIMEOUT).unwrap();
    assert_eq!((result.output.as_slice(), result.errors.as_slice()), (&b"said\n"[..], &b"why\n"[..]));
    assert_eq!([child, daemon].map(|file| is_there(pid_in(&file))), [false; 2]);
}

#[test]
fn a_process_that_takes_too_long_is_killed_with_its_children() {
    let state = tempfile::tempdir().unwrap();
    let (script, files) = family(&state);
    let folder = AttemptFolder::at(state.path().join("aside"));
    let late = run_helper(&folder, Plan { order: shell(1, &script), script: None }, launch_server(), Duration::from_secs(2)).unwrap_err();
    assert!(matches!(late, HelperError::Late(_)), "{late}");
    assert_eq!(late.to_string(), "it did not finish within 2 s");
    // On a slow machine they may not have started yet.
    let begun = files.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    assert!(begun.into_iter().all(|pid: i32| !is_there(pid)));
}

#[test]
fn a_container_without_supervisors_is_removed() {
    let state = tempfile::tempdir().unwrap();
    let removed = state.path().join("removed");
    let remove = ["sh", "-c", &format!("pwd > {}", removed.display())].map(str::to_owned).to_vec();
    let folder = launch(&state, Order { afterwards: Some(remove), ..shell(1, "sleep 3600") });
    let (guard, shim) = supervisors(&folder);
    kill(&[guard, shim]);
    lost(&folder);
    assert!(!removed.exists());
    remove_container(&folder, &Arc::new(LaunchServer::new(program())));
    until(|| (fs::read_to_string(&removed).ok()? == "/\n").then_some(()));
}
