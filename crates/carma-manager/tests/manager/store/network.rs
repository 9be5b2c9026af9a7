//! A store on a network file system: a rollback journal instead of a write-ahead log.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::JobId;
use carma_manager::store::*;
use rusqlite::Connection;

use super::child;
use super::lab::*;

fn open(lab: &Lab, journal: Journal) -> Store {
    OpenMode { journal: Some(journal), ..OpenMode::new(lab.path()).unwrap() }.open(|_| true).unwrap()
}

fn mode(lab: &Lab) -> String {
    let mode: String = Connection::open(lab.path()).unwrap().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    // A connection that has not set it calls every rollback journal the same.
    mode.replace("delete", "rollback")
}

#[test]
fn a_store_moves_between_file_systems() {
    let lab = Lab::new();
    let mut all = Vec::new();
    for (journal, name) in [(Journal::Wal, "wal"), (Journal::Rollback, "rollback"), (Journal::Wal, "wal"), (Journal::Rollback, "rollback")]
    {
        let store = open(&lab, journal);
        let reader = store.reader().unwrap();
        all.push(submit(&store));
        assert_eq!((all_jobs(&store), mode(&lab).as_str()), (all.clone(), name));
        assert!(reader.load().unwrap().jobs.len() == all.len());
    }
    let wal = lab.files().into_iter().filter(|name| name.ends_with("-wal") || name.ends_with("-shm"));
    assert_eq!(wal.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_store_whose_manager_was_killed_moves_with_its_log() {
    let lab = Lab::new();
    let acknowledged = child::killed_after("store::crash::writes_until_killed", &lab.path(), 20);
    let log = lab.path().with_file_name("carma.db-wal");
    assert!(fs::metadata(log).unwrap().len() > 0);
    let store = open(&lab, Journal::Rollback);
    let all = all_jobs(&store);
    assert!(acknowledged.iter().all(|id| all.contains(id)), "{acknowledged:?} but {all:?}");
}

#[test]
fn a_half_written_commit_is_undone_for_readers_without_a_manager() {
    let lab = Lab::new();
    for _ in 0..20 {
        let acknowledged = child::killed_after("store::lease::holds_a_lease_until_killed", &lab.path(), 3);
        let reader = Reader::of_this_version(&lab.path()).unwrap().unwrap();
        assert_eq!(reader.damage().unwrap(), [""; 0]);
        let all: Vec<JobId> = reader.history(&JobFilter::default(), None, u32::MAX).unwrap().iter().map(|job| job.id).collect();
        assert!(acknowledged.iter().all(|id| all.contains(id)));
    }
}

#[test]
fn reads_without_a_pause_do_not_starve_the_writer() {
    let lab = Lab::new();
    let store = open(&lab, Journal::Rollback);
    for _ in 0..20 {
        store.write((0..100).map(|_| accepted(store.next_jobs(1))).collect::<Vec<_>>()).wait().unwrap();
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let reader = store.reader().unwrap();
                while !done.load(Ordering::Relaxed) {
                    reader.load().unwrap();
                }
            });
        }
        let began = Instant::now();
        for _ in 0..10 {
            submit(&store);
        }
        done.store(true, Ordering::Relaxed);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

#[test]
fn a_backup_has_no_lease() {
    let (lab, other) = (Lab::new(), Lab::new());
    let store = open(&lab, Journal::Rollback);
    submit(&store);
    back_up(&lab.path(), &other.path(), false).unwrap();
    let leases: u32 = Connection::open(other.path()).unwrap().query_row("SELECT count(*) FROM lease", [], |row| row.get(0)).unwrap();
    assert_eq!(leases, 0);
}
