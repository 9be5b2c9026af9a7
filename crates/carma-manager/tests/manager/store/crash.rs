//! `kill -9` and power cuts at any moment: nothing acknowledged is lost, nothing is there by half.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::{io, thread};

use carma_core::*;
use carma_manager::store::*;
use proptest::prelude::*;

use super::arrays::{array, sweep};
use super::child;
use super::lab::*;

/// Several stores with a writer process each, in parallel: most of the time is spent waiting for the disk.
const STORES: u64 = 4;
/// How often each writing process is killed.
const KILLS: u64 = 50;

#[test]
#[ignore = "the process that is killed"]
fn writes_until_killed() {
    let Some(path) = child::store() else { return };
    let store = Store::open(path).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let id = store.next_jobs(1);
                    store.write([accepted(id), event(Some(id), "accepted", NOW), started(id, 1)]).wait().unwrap();
                    let array = array(&store, sweep()).array;
                    // In one piece: a line that is there is a whole number.
                    io::stdout().write_all(format!("{}\n{}\n", id.0, array.0).as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_writer_has_kept_every_acknowledged_change() {
    thread::scope(|scope| (0..STORES).for_each(|lane| drop(scope.spawn(move || kill_and_look(lane)))));
}

fn kill_and_look(lane: u64) {
    let lab = Lab::new();
    let mut seen = JobId(0);
    for kill in 0..KILLS {
        let acknowledged = child::killed_after("store::crash::writes_until_killed", &lab.path(), ((kill + lane) * 7 % 23) as usize);
        let store = lab.open();
        let reader = store.reader().unwrap();
        let all = all_jobs(&store);
        for id in &acknowledged {
            assert!(*id > seen, "{id} was given twice");
            assert!(all.binary_search(id).is_ok(), "{id} is lost");
        }
        // Earlier ones were checked before.
        for id in all.iter().filter(|id| **id > seen) {
            let job = reader.job(*id).unwrap().unwrap();
            let Some(array) = job.job.job.spec.array else {
                assert_eq!((job.events.len(), job.attempts.len()), (1, 1), "{id} is there by half");
                continue;
            };
            assert_eq!(job.events.len(), 1);
            let jobs = reader.members(array.array).unwrap();
            assert_eq!(jobs.iter().map(|job| job.id.0 - array.array.0).collect::<Vec<_>>(), [0, 1, 2, 3], "{id} is of half an array");
            let values = jobs.iter().map(|job| reader.request(job.id).unwrap().unwrap().array.unwrap().parameters["lr"].clone());
            assert_eq!(values.collect::<Vec<_>>(), ["0.1", "0.2", "0.3", "0.4"]);
        }
        seen = all.last().copied().unwrap_or(seen);
    }
    assert!(seen.0 > KILLS, "only {seen} was written");
    assert_eq!(lab.open().reader().unwrap().damage().unwrap(), [""; 0]);
}

/// A store as a power cut may leave it: the file, its log, and how long the log was when each job was acknowledged.
struct Cut {
    file: Vec<u8>,
    log: Vec<u8>,
    acknowledged: Vec<(JobId, usize)>,
}

const CHECKPOINTED: u64 = 5;

fn running_store() -> Cut {
    let lab = Lab::new();
    let store = lab.open();
    for _ in 0..CHECKPOINTED {
        submit(&store);
    }
    // Closed, it is all in the file.
    drop(store);
    let store = lab.open();
    let log = || fs::read(PathBuf::from(format!("{}-wal", lab.path().display()))).unwrap();
    let acknowledged = (0..40).map(|_| (submit(&store), log().len())).collect();
    Cut { file: fs::read(lab.path()).unwrap(), log: log(), acknowledged }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_whose_end_is_lost_or_garbled_has_all_that_was_before(place in 0.0..1.0, garbage in proptest::collection::vec(any::<u8>(), 0..9_000)) {
        static CUT: std::sync::LazyLock<Cut> = std::sync::LazyLock::new(running_store);
        let end = (CUT.log.len() as f64 * place) as usize;
        let lab = Lab::new();
        fs::write(lab.path(), &CUT.file).unwrap();
        let mut log = File::create(format!("{}-wal", lab.path().display())).unwrap();
        log.write_all(&CUT.log[..end]).unwrap();
        log.write_all(&garbage).unwrap();
        let store = lab.open();
        let all = all_jobs(&store);
        let safe = CUT.acknowledged.iter().filter(|(_, length)| *length <= end).map(|(id, _)| *id).max().unwrap_or(JobId(CHECKPOINTED));
        // A first part of what was acknowledged, and at least what was on the disk.
        prop_assert_eq!(&all, &(1..=all.len() as u64).map(JobId).collect::<Vec<_>>());
        prop_assert!(all.last() >= Some(&safe), "{:?} are there, but {} was safe", all, safe);
        prop_assert_eq!(submit(&store), JobId(all.len() as u64 + 1));
        prop_assert!(store.reader().unwrap().damage().unwrap().is_empty());
    }
}
