//! Opening: new, old, newer, foreign, damaged, in use.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use carma_core::*;
use carma_manager::store::*;
use rusqlite::Connection;

use super::lab::*;

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_store_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/carma/carma.db");
    let store = Store::open(&path).unwrap();
    submit(&store);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(format!("{}{suffix}", path.display())), 0o600, "{suffix}");
    }
}

#[test]
fn two_managers_never_share_a_store() {
    let lab = Lab::new();
    let store = lab.open();
    let refused = Store::open(lab.path()).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{refused}");
    drop(store);
    lab.open();
}

#[test]
fn a_store_of_the_first_schema_opens() {
    let lab = Lab::new();
    let fixture = Connection::open(lab.path()).unwrap();
    fixture.execute_batch(include_str!("first-schema.sql")).unwrap();
    drop(fixture);
    let store = lab.open();
    let reader = store.reader().unwrap();
    let loaded = reader.load().unwrap();
    let waits = stored(JobId(2), bob(), Some("waits"));
    assert_eq!(loaded.jobs, [unfinished(&waits)]);
    assert_eq!(reader.job(JobId(2)).unwrap().unwrap().job, waits);
    assert_eq!((loaded.running.len(), loaded.drained.len(), loaded.machine_changes.len()), (1, 1, 1));
    assert_eq!(loaded.clock, Time::from_secs(500));
    let over = reader.job(JobId(1)).unwrap().unwrap();
    assert_eq!((over.attempts.len(), over.events.len()), (1, 1));
    assert_eq!(reader.samples(GPU, UnixMinute(0)..UnixMinute(100)).unwrap(), [sample(GPU, 10, 60, 0.6)]);
    let stays = reader.stays(GPU, UnixMillis(0)..UnixMillis(NOW.0 + 1)).unwrap();
    let stays: Vec<_> = stays.iter().map(|stay| (stay.attempt.job.0, stay.reserved, stay.launched, stay.ended)).collect();
    assert_eq!(stays, [(1, MiB(4_000), NOW, Some(NOW)), (2, MiB(4_000), NOW, None)]);
    assert_eq!(submit(&store), JobId(3));
}

#[test]
fn an_old_store_is_migrated_though_a_placement_in_it_cannot_be_read() {
    let lab = Lab::new();
    let fixture = Connection::open(lab.path()).unwrap();
    fixture.execute_batch(include_str!("first-schema.sql")).unwrap();
    fixture.execute_batch("UPDATE attempts SET placement = 'nonsense' WHERE job = 2").unwrap();
    drop(fixture);
    let reader = lab.open().reader().unwrap();
    assert_eq!(reader.stays(GPU, UnixMillis(0)..UnixMillis(NOW.0 + 1)).unwrap().len(), 1);
    assert_eq!(reader.load().unwrap().unreadable.len(), 1);
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_alone() {
    let lab = Lab::new();
    drop(lab.open());
    Connection::open(lab.path()).unwrap().execute_batch("PRAGMA user_version = 900").unwrap();
    let before = fs::read(lab.path()).unwrap();
    let refused = Store::open(lab.path()).unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 900, .. }), "{refused}");
    assert_eq!(fs::read(lab.path()).unwrap(), before);
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let lab = Lab::new();
    let fill: [(&str, &dyn Fn()); 3] = [
        ("text", &|| fs::write(lab.path(), "what I did on my holidays\n".repeat(300)).unwrap()),
        ("another program's", &|| Connection::open(lab.path()).unwrap().execute_batch("CREATE TABLE holidays (day)").unwrap()),
        ("damaged", &|| {
            drop(lab.open());
            let mut bytes = fs::read(lab.path()).unwrap();
            bytes[100..].fill(0xa5);
            fs::write(lab.path(), bytes).unwrap();
        }),
    ];
    for (what, fill) in fill {
        let _ = fs::remove_file(lab.path());
        fill();
        let before = fs::read(lab.path()).unwrap();
        let refused = Store::open(lab.path()).unwrap_err();
        assert!(matches!(refused, StoreError::Damaged { .. } | StoreError::Foreign { .. }), "{what}: {refused:?}");
        assert!(refused.to_string().contains("carma.db"), "{refused}");
        assert_eq!(fs::read(lab.path()).unwrap(), before, "{what}");
    }
}

#[test]
fn a_store_whose_making_was_cut_short_is_made() {
    let lab = Lab::new();
    fs::write(lab.path(), "").unwrap();
    submit(&lab.open());
    assert_eq!(lab.open().next_jobs(1), JobId(2));
    assert!(!lab.files().iter().any(|name| name.contains("backup")));
}

#[test]
fn an_integrity_check_finds_damage() {
    let lab = Lab::new();
    let store = lab.open();
    store.write((0..2_000).map(|_| event(None, "tick", NOW)).collect::<Vec<_>>()).wait().unwrap();
    assert_eq!(store.reader().unwrap().damage().unwrap(), [""; 0]);
    drop(store);
    let mut bytes = fs::read(lab.path()).unwrap();
    let of_events = |page: &&mut [u8]| page.windows(4).any(|word| word == b"tick");
    bytes.chunks_mut(4_096).filter(of_events).last().unwrap().fill(0xa5);
    fs::write(lab.path(), bytes).unwrap();
    assert!(!lab.open().reader().unwrap().damage().unwrap().is_empty());
}
