//! Backups of a store that is in use, and stores that are restored from them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use carma_core::*;
use carma_manager::store::*;
use rusqlite::Connection;

use super::lab::*;

/// Everything that a restarted manager and a user see.
fn answers(store: &Store) -> (Loaded, Vec<Option<JobHistory>>) {
    let reader = store.reader().unwrap();
    (reader.load().unwrap(), all_jobs(store).into_iter().map(|id| reader.job(id).unwrap()).collect())
}

fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())).collect();
    all.sort();
    all.retain(|(name, _)| name != "carma.db.lock");
    all
}

#[test]
fn a_restored_backup_gives_the_same_answers() {
    let (lab, other) = (Lab::new(), Lab::new());
    let store = lab.open();
    let ids = [(); 3].map(|()| submit(&store));
    store.write([started(ids[0], 1), started(ids[1], 1), event(Some(ids[2]), "noted", NOW)]).wait().unwrap();
    store.write([attempt_ended(ids[1], 1, NOW, 5.0), finished(ids[1], Outcome::Succeeded, NOW)]).wait().unwrap();
    let file = lab.path().with_file_name("monday");
    let copied = back_up(&lab.path(), &file, false).unwrap();
    assert_eq!((copied.jobs, copied.unfinished), (3, 2));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "it holds the environments of jobs");
    assert!(matches!(back_up(&lab.path(), &file, false), Err(BackupError::Exists(_))));
    submit(&store);
    assert_eq!(back_up(&lab.path(), &file, true).unwrap().jobs, 4);
    // Into a folder that does not exist yet.
    let path = other.path().with_file_name("state").join("carma.db");
    let restored = restore(&file, &path).unwrap();
    assert_eq!(restored, Restored { copied: back_up(&lab.path(), &file, true).unwrap(), kept: None });
    assert_eq!(answers(&Store::open(path).unwrap()), answers(&store));
    assert!(!lab.files().iter().any(|name| name.contains("partial")));
}

#[test]
fn a_backup_during_load_holds_whole_batches_up_to_one_moment() {
    let (lab, other) = (Lab::new(), Lab::new());
    let store = lab.open();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let id = store.next_jobs(1);
                    store.write([accepted(id), started(id, 1)]).wait().unwrap();
                }
            });
        }
        for round in 0..10_u64 {
            let before = all_jobs(&store);
            let file = lab.path().with_file_name(format!("backup-{round}"));
            back_up(&lab.path(), &file, false).unwrap();
            let restored = restore(&file, &other.path()).unwrap();
            let copy = other.open();
            let all = all_jobs(&copy);
            assert!(before.iter().all(|id| all.contains(id)), "what was acknowledged before is there");
            assert_eq!(copy.reader().unwrap().load().unwrap().running.len(), all.len(), "no batch is there by half");
            assert_eq!(restored.copied.jobs, all.len() as u64);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(other.files().iter().filter(|name| name.contains("before-restore")).count(), 9, "replaced stores are kept");
}

#[test]
fn the_replaced_store_is_kept_with_its_last_changes() {
    let (lab, other) = (Lab::new(), Lab::new());
    let (file, store) = (other.path().with_file_name("backup"), lab.open());
    submit(&other.open());
    back_up(&other.path(), &file, false).unwrap();
    for _ in 0..5 {
        submit(&store);
    }
    drop(store);
    let kept = restore(&file, &lab.path()).unwrap().kept.unwrap();
    assert_eq!((all_jobs(&lab.open()).len(), all_jobs(&Store::open(kept).unwrap()).len()), (1, 5));
}

#[test]
fn a_store_in_use_is_not_replaced() {
    let lab = Lab::new();
    let store = lab.open();
    let file = lab.path().with_file_name("backup");
    back_up(&lab.path(), &file, false).unwrap();
    submit(&store);
    let refused = restore(&file, &lab.path()).unwrap_err();
    assert!(matches!(refused, BackupError::Store(StoreError::InUse { .. })), "{refused}");
    assert_eq!(all_jobs(&store).len(), 1);
}

#[test]
fn other_files_are_refused_and_change_nothing() {
    let (lab, other) = (Lab::new(), Lab::new());
    submit(&lab.open());
    let file = other.path();
    let kinds: [(&str, &dyn Fn()); 6] = [
        ("empty", &|| fs::write(&file, "").unwrap()),
        ("text", &|| fs::write(&file, "no database\n".repeat(500)).unwrap()),
        ("database of another program", &|| Connection::open(&file).unwrap().execute_batch("CREATE TABLE notes (day)").unwrap()),
        ("newer", &|| {
            back_up(&lab.path(), &file, true).unwrap();
            Connection::open(&file).unwrap().execute_batch("PRAGMA user_version = 900").unwrap();
        }),
        ("damaged", &|| {
            back_up(&lab.path(), &file, true).unwrap();
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle..].fill(0xa5);
            fs::write(&file, bytes).unwrap();
        }),
        ("cut off", &|| {
            back_up(&lab.path(), &file, true).unwrap();
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        }),
    ];
    let folder = lab.path().parent().unwrap().to_owned();
    for (what, make) in kinds {
        let _ = fs::remove_file(&file);
        make();
        let before = contents(&folder);
        let refused = restore(&file, &lab.path()).unwrap_err();
        let newer = matches!(refused, BackupError::Store(StoreError::Newer { .. }));
        let foreign = matches!(refused, BackupError::Store(StoreError::Foreign { .. }) | BackupError::Damaged { .. });
        assert!(if what == "newer" { newer } else { foreign }, "{what}: {refused:?}");
        assert!(contents(&folder) == before, "{what}");
        let absent = folder.join("absent/carma.db");
        assert!(restore(&file, &absent).is_err() && !absent.parent().unwrap().exists(), "{what}");
    }
}

#[test]
fn a_store_is_neither_backed_up_onto_itself_nor_restored_from_itself() {
    let lab = Lab::new();
    submit(&lab.open());
    let same = lab.path().parent().unwrap().join("./carma.db");
    assert!(matches!(back_up(&lab.path(), &same, true), Err(BackupError::Same(_))));
    assert!(matches!(restore(&same, &lab.path()), Err(BackupError::Same(_))));
    assert!(matches!(back_up(&lab.path().with_file_name("none.db"), &same, true), Err(BackupError::NoStore(_))));
    assert_eq!(all_jobs(&lab.open()).len(), 1);
}

#[test]
fn a_backup_of_an_old_version_is_restored() {
    let (lab, other) = (Lab::new(), Lab::new());
    Connection::open(other.path()).unwrap().execute_batch(include_str!("first-schema.sql")).unwrap();
    assert!(restore(&other.path(), &lab.path()).unwrap().copied.jobs > 0);
    assert!(!all_jobs(&lab.open()).is_empty());
}
