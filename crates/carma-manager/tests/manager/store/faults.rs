//! No room, and no permission to write.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use carma_core::*;
use carma_manager::store::*;
use carma_testing::{Missing, NOBODY, as_nobody, need, skip};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use super::child;
use super::lab::*;

/// Deleted, it makes room.
const FILLER: &str = "ballast";

#[test]
#[ignore = "the process that has no room"]
fn writes_until_there_is_no_room() {
    let Some(path) = child::store() else { return };
    let store = Store::open(&path).unwrap();
    let long = "x".repeat(2_000);
    let write = || {
        let id = store.next_jobs(1);
        store.write([accepted(id), event(Some(id), &long, NOW), event(Some(id), &long, NOW)]).wait().map(|()| id)
    };
    let mut acknowledged = Vec::new();
    let error = loop {
        match write() {
            Ok(id) => acknowledged.push(id),
            Err(error) => break error,
        }
    };
    // The kernel says of a file that may not grow only that it is too large.
    let full = path.with_file_name(FILLER).exists();
    assert!(matches!(error, WriteError::Full(_)) || !full && matches!(error, WriteError::Failed { .. }), "{error}");
    assert!(!acknowledged.is_empty());
    assert_eq!(all_jobs(&store), acknowledged);
    // It fails until there is room, and then continues.
    assert!(write().is_err());
    setrlimit(Resource::Fsize, Rlimit { current: None, ..getrlimit(Resource::Fsize) }).unwrap();
    let _ = fs::remove_file(path.with_file_name(FILLER));
    acknowledged.push(write().unwrap());
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(all_jobs(&store), acknowledged);
    let reader = store.reader().unwrap();
    assert!(acknowledged.iter().all(|id| reader.job(*id).unwrap().unwrap().events.len() == 2));
    assert_eq!(reader.damage().unwrap(), [""; 0]);
}

/// That exactly one test was run, and passed.
fn assert_passed(output: &Output) {
    let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
}

#[test]
fn files_that_may_not_grow_are_survived() {
    let lab = Lab::new();
    // One or two MiB, in the blocks of any shell. A signal that is ignored stays ignored in whatever is started.
    let limited = ["sh", "-c", "trap '' XFSZ; ulimit -S -f 2400; exec \"$@\"", "sh"];
    assert_passed(&child::command(&limited, "store::faults::writes_until_there_is_no_room", &lab.path()).output().unwrap());
}

#[test]
fn a_full_file_system_is_survived() {
    let lab = Lab::new();
    let path = lab.path();
    let folder = path.parent().unwrap().display().to_string();
    // A small file system that only this process sees.
    let script = "mount -t tmpfs -o size=3m tmpfs \"$0\" && head -c 1500000 /dev/zero > \"$0/ballast\" && exec \"$@\"";
    let small = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, &folder];
    if !Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", &folder]).status().is_ok_and(|status| status.success()) {
        skip!(Missing::Mounts);
    }
    assert_passed(&child::command(&small, "store::faults::writes_until_there_is_no_room", &path).output().unwrap());
}

#[test]
#[ignore = "the process that may not write"]
fn may_not_write() {
    let Some(path) = child::store() else { return };
    let refused = Store::open(&path).unwrap_err();
    assert!(matches!(refused, StoreError::ReadOnly { .. }), "{refused:?}");
    assert!(refused.to_string().contains("carma.db"), "{refused}");
}

/// Lets an unprivileged process try to open a read-only store.
fn assert_refused(path: &Path) {
    let mut command = child::command(&[], "store::faults::may_not_write", path);
    if getuid().is_root() {
        command.uid(NOBODY);
    }
    assert_passed(&command.output().unwrap());
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_store_that_may_not_be_written_is_refused_with_a_reason() {
    if getuid().is_root() {
        need!(as_nobody(&env::current_exe().unwrap()));
    }
    let lab = Lab::new();
    let path = lab.path();
    let folder = path.parent().unwrap();
    permit(folder, 0o555);
    assert_refused(&path);
    permit(folder, 0o755);
    submit(&lab.open());
    // The folder could be written, the file not.
    permit(folder, 0o777);
    permit(&path.with_file_name("carma.db.lock"), 0o666);
    permit(&path, 0o444);
    assert_refused(&path);
    permit(&path, 0o600);
    assert_eq!(all_jobs(&lab.open()), [JobId(1)]);
}
