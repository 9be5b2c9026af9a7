//! Jobs of other users, run by root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use carma_manager::attempt::{Exit, Order, RunAs};

use super::terminals::{Person, at_terminal};
use super::{ended, launch, shell};

fn nobody() -> RunAs {
    RunAs { uid: 65534, gid: 65534, name: "nobody".to_owned(), home: "/nonexistent".into() }
}

fn is_root() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        eprintln!("not root: nothing to see here");
    }
    root
}

fn open_up(path: &Path) {
    fs::set_permissions(path, PermissionsExt::from_mode(0o711)).unwrap();
}

#[test]
fn a_job_has_its_users_rights_and_no_others() {
    if !is_root() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let theirs = state.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    let job = "id -u; id -g; id -G; umask; touch made; echo 5 > \"$FOLDER/progress\"; cat /etc/shadow; cat \"$FOLDER/order.json\"";
    let mut order = Order { user: Some(nobody()), directory: theirs.clone(), output: Some(theirs.join("out")), ..shell(1, job) };
    order.environment.insert("FOLDER".to_owned(), state.path().join("attempts/1/1").display().to_string());
    let folder = launch(&state, order);
    assert_eq!(ended(&folder).exit, Exit::Code(1), "it cannot read the order");
    let output = fs::read_to_string(folder.output()).unwrap();
    assert_eq!(output, "65534\n65534\n65534\n0022\n");
    assert_eq!(fs::read_to_string(folder.errors()).unwrap().matches("Permission denied").count(), 2);
    assert_eq!(fs::read_to_string(folder.progress()).unwrap(), "5\n");
    for (path, mode) in [(folder.output(), 0o600), (folder.errors(), 0o600), (theirs.join("made"), 0o644), (theirs.join("out"), 0o644)] {
        let data = fs::metadata(&path).unwrap();
        assert_eq!((data.uid(), data.gid(), data.mode() & 0o777), (65534, 65534, mode), "{}", path.display());
    }
    assert_eq!(fs::metadata(folder.path().join("order.json")).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn files_and_folders_that_are_not_the_users_are_refused() {
    if !is_root() {
        return;
    }
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
fn a_terminal_is_its_users() {
    if !is_root() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    open_up(state.path());
    let job = "read line; id -u; stat -c '%u %a' \"$(tty)\"; echo again > \"$(tty)\"";
    let folder = launch(&state, at_terminal(Order { user: Some(nobody()), ..shell(1, job) }));
    let mut ada = Person::at(&folder);
    ada.types("\r");
    ada.sees("65534\r\n65534 600\r\nagain\r\n");
    assert_eq!(ended(&folder).exit, Exit::Code(0));
}
