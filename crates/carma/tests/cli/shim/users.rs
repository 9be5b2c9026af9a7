//! Jobs of other users, run by root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use carma_core::{Placement, ServerId};
use carma_manager::attempt::{Exit, HostLimits, Order, RunAs};
use carma_manager::launch::{Assignment, Prepared, look_up, plan};
use carma_manager::request::{Image, JobCommand, JobRequest};
use carma_manager::supervise::{AttemptFolder, Owners};
use carma_testing::{need, root};

use super::terminals::{AttachedUser, at_terminal};
use super::{attempt, ended, launch, launch_server, program, running, shell, until};

fn nobody() -> RunAs {
    RunAs { uid: 65534, gid: 65534, name: "nobody".to_owned(), home: "/nonexistent".into() }
}

fn open_up(path: &Path) {
    fs::set_permissions(path, PermissionsExt::from_mode(0o711)).unwrap();
}

/// A folder that belongs to the user of the jobs.
fn folder_of_nobody(state: &Path) -> PathBuf {
    let theirs = state.join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    theirs
}

#[test]
fn a_job_has_its_users_rights_and_no_others() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let theirs = folder_of_nobody(state.path());
    let job = "id -u; id -g; id -G; umask; touch made; echo 5 > \"$FOLDER/progress\"; cat /etc/shadow; cat \"$FOLDER/order.json\"";
    let mut order = Order { user: Some(nobody()), directory: theirs.clone(), output: Some(theirs.join("out")), ..shell(1, job) };
    order.environment.insert("FOLDER".to_owned(), state.path().join("attempts/1/1").display().to_string());
    let folder = launch(&state, order);
    assert_eq!(ended(&folder).exit, Exit::Code(1), "it cannot read the order");
    let output = fs::read_to_string(folder.output()).unwrap();
    assert_eq!(output, "65534\n65534\n65534\n0022\n");
    assert_eq!(fs::read_to_string(folder.errors()).unwrap().matches("Permission denied").count(), 2);
    assert_eq!(fs::read_to_string(folder.progress()).unwrap(), "5\n");
    for (path, mode) in [(theirs.join("made"), 0o644), (theirs.join("out"), 0o644)] {
        let data = fs::metadata(&path).unwrap();
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o777), (65534, 65534, mode), "{}", path.display());
    }
    assert_eq!(fs::metadata(folder.path().join("order.json")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_job_has_the_umask_of_its_order() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let theirs = folder_of_nobody(state.path());
    let order = Order { umask: Some("0027".parse().unwrap()), output: Some(theirs.join("out")), ..shell(1, "umask; touch made") };
    let folder = launch(&state, Order { user: Some(nobody()), directory: theirs.clone(), ..order });
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "0027\n");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!([mode(theirs.join("made")), mode(theirs.join("out")), mode(folder.output())], [0o640, 0o640, 0o600]);
}

#[test]
fn files_and_folders_that_are_not_the_users_are_refused() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    let secret = state.path().join("secret");
    fs::write(&secret, "mine").unwrap();
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    open_up(state.path());
    let words = |order: Order| match ended(&launch(&state, order)).exit {
        Exit::NotStarted(words) => words.replace(state.path().to_str().unwrap(), "FOLDER"),
        other => panic!("{other:?}"),
    };
    let output = Order { user: Some(nobody()), output: Some(secret.clone()), ..shell(1, "echo overwritten") };
    assert_eq!(words(output), "cannot write to FOLDER/secret: Permission denied (os error 13)");
    assert_eq!(fs::read_to_string(secret).unwrap(), "mine");
    let closed = state.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let folder = Order { user: Some(nobody()), directory: closed, ..shell(2, "pwd") };
    assert_eq!(words(folder), "cannot enter the folder FOLDER/closed: Permission denied (os error 13)");
}

#[test]
fn a_terminal_belongs_to_its_user() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let job = "read line; id -u; stat -c '%u %a' \"$(tty)\"; echo again > \"$(tty)\"";
    let folder = launch(&state, at_terminal(Order { user: Some(nobody()), ..shell(1, job) }));
    let mut ada = AttachedUser::at(&folder);
    ada.types("\r");
    ada.sees("65534\r\n65534 600\r\nagain\r\n");
    assert_eq!(ended(&folder).exit, Exit::Code(0));
}

/// A stand-in for Docker.
const DOCKER: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
if [ "$1" = rm ]; then id -u > gone; exit; fi
while [ "$1" != --cidfile ]; do shift; done
touch begun
while [ ! -e go ]; do sleep 0.01; done
printf 3f4a%.0s 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 > "$2" || exit 1
while [ ! -e stop ]; do sleep 0.01; done
"#;

#[test]
fn a_container_belongs_to_its_user_and_is_recorded_by_name() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let theirs = folder_of_nobody(state.path());
    let docker = theirs.join("docker");
    fs::write(&docker, DOCKER).unwrap();
    fs::set_permissions(&docker, PermissionsExt::from_mode(0o755)).unwrap();

    let mut request = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), &theirs);
    request.environment.insert("PATH".to_owned(), format!("{}:/usr/bin:/bin", theirs.display()));
    request.image = Some(Image { name: "torch".to_owned(), engine: None });
    let (user, folder) = (nobody(), AttemptFolder::of(state.path(), attempt(1)));
    let assignment = Assignment {
        owner: "somebody",
        attempt: attempt(1),
        request: &request,
        user: Some(&user),
        placement: &Placement { server: ServerId(0), devices: Vec::new() },
        devices: &[],
        mps: None,
        folder: &folder,
        log_limit: 1 << 20,
        limits: HostLimits::default(),
        checkpoints: None,
        checkpoint_folder: "/".into(),
    };
    let plan = plan(&assignment, &look_up(&request, Some(&user), program()).unwrap()).unwrap();
    let folder = Prepared::new(folder.clone()).unwrap().launch(plan, launch_server()).unwrap();
    until(|| theirs.join("begun").exists().then_some(()));
    let is_complete = || Owners::of([(attempt(1), &running(&folder))]).is_complete();
    assert!(!is_complete());
    fs::write(theirs.join("go"), "").unwrap();
    until(|| is_complete().then_some(()));
    let name = fs::metadata(folder.container()).unwrap();
    assert_eq!((name.uid(), name.len()), (65534, 64));
    assert_eq!(fs::metadata(folder.container().parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    fs::write(theirs.join("stop"), "").unwrap();
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert_eq!(fs::read_to_string(theirs.join("gone")).unwrap(), "65534\n");
}
