//! The lease: managers of several hosts on one store.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use carma_manager::store::*;
use rusqlite::Connection;

use super::child;
use super::lab::*;

/// Short, so that tests do not wait.
const LEASE: Duration = Duration::from_millis(800);

fn from(lab: &Lab, host: &str, boot: &str) -> OpenMode {
    OpenMode {
        path: lab.path(),
        journal: Some(Journal::Rollback),
        host: HostIdentity { host: host.to_owned(), boot: boot.to_owned() },
        timing: LeaseTiming::expiring_after(LEASE),
    }
}

fn open(lab: &Lab, host: &str) -> Result<Store, StoreError> {
    from(lab, host, "1").open(|_| true)
}

/// What a crashed manager leaves: its row.
fn leave_row(lab: &Lab, host: &str, boot: &str) {
    let sql = "REPLACE INTO lease (one, nonce, host, boot, pid, renewals) VALUES (1, 'lost', ?1, ?2, 4711, 12)";
    Connection::open(lab.path()).unwrap().execute(sql, [host, boot]).unwrap();
}

#[test]
fn a_manager_on_another_host_is_refused_while_the_lease_is_renewed() {
    let lab = Lab::new();
    let first = open(&lab, "login").unwrap();
    submit(&first);
    let began = Instant::now();
    let refused = open(&lab, "node").unwrap_err();
    assert!(began.elapsed() < LEASE, "one renewal is enough");
    let words = refused.to_string();
    let named = format!("in use by the manager on login with process number {}: stop that manager first", std::process::id());
    assert!(words.contains(&named), "{words}");
    submit(&first);
}

#[test]
fn an_idle_manager_keeps_its_lease() {
    let lab = Lab::new();
    let first = open(&lab, "login").unwrap();
    thread::sleep(LEASE * 2);
    assert!(matches!(open(&lab, "node"), Err(StoreError::InUse { host: Some(host), .. }) if host == "login"));
    submit(&first);
}

#[test]
fn a_returned_lease_is_free_at_once() {
    let lab = Lab::new();
    let first = open(&lab, "login").unwrap();
    let id = submit(&first);
    first.close();
    assert_eq!(first.write([accepted(first.next_jobs(1))]).wait(), Err(WriteError::Closed));
    // Other threads may still have the closed store.
    let waited = |_: &Holder| panic!("it waits");
    let second = from(&lab, "node", "2").open(waited).unwrap();
    assert_eq!(all_jobs(&second), [id]);
    drop((first, second));
    from(&lab, "login", "1").open(waited).unwrap();
}

#[test]
fn a_silent_lease_expires_by_the_clock_of_the_waiting_manager() {
    let lab = Lab::new();
    drop(open(&lab, "login").unwrap());
    leave_row(&lab, "login", "1");
    let began = Instant::now();
    let mut holder = None;
    let wait = |by: &Holder| {
        holder = Some(by.clone());
        true
    };
    let second = from(&lab, "node", "1").open(wait).unwrap();
    assert_eq!(holder, Some(Holder { host: "login".to_owned(), pid: 4711 }));
    assert!(began.elapsed() >= LEASE && began.elapsed() < LEASE * 4, "{:?}", began.elapsed());
    submit(&second);
}

#[test]
fn the_wait_for_a_lease_can_be_ended() {
    let lab = Lab::new();
    drop(open(&lab, "login").unwrap());
    leave_row(&lab, "login", "1");
    assert!(matches!(from(&lab, "node", "1").open(|_| false), Err(StoreError::Interrupted { .. })));
}

#[test]
fn after_a_takeover_the_old_manager_writes_nothing() {
    let lab = Lab::new();
    // It renews nothing for as long as this test takes.
    let timing = LeaseTiming { renewal: Duration::from_secs(3600), expiry: LEASE };
    let old = OpenMode { timing, ..from(&lab, "login", "1") }.open(|_| true).unwrap();
    let (lost, is_lost) = channel();
    old.when_lost(move |error| lost.send(error.clone()).unwrap());
    let kept = submit(&old);
    assert!(old.is_current());
    let new = open(&lab, "node").unwrap();
    let after = submit(&new);
    assert!(new.is_current() && !old.is_current(), "a commit before the silence proves nothing");
    let by = Some(Holder { host: "node".to_owned(), pid: std::process::id() });
    let taken_over = WriteError::TakenOver { by };
    assert_eq!(old.write([finished(kept, carma_core::Outcome::Cancelled, NOW)]).wait(), Err(taken_over.clone()));
    assert_eq!(is_lost.try_recv(), Ok(taken_over.clone()));
    assert!(taken_over.to_string().starts_with("another manager has taken over (the manager on node"), "{taken_over}");
    // It is final, and the end of the old manager leaves the lease to the new one.
    assert!(matches!(old.write([accepted(old.next_jobs(9))]).wait(), Err(WriteError::TakenOver { .. })));
    drop(old);
    assert_eq!(all_jobs(&new), [kept, after]);
    assert!(new.reader().unwrap().job(kept).unwrap().unwrap().job.ended.is_none());
    submit(&new);
}

#[test]
fn an_idle_manager_notices_a_takeover() {
    let lab = Lab::new();
    let old = open(&lab, "login").unwrap();
    let (lost, is_lost) = channel();
    old.when_lost(move |error| lost.send(error.clone()).unwrap());
    leave_row(&lab, "node", "2");
    let by = Some(Holder { host: "node".to_owned(), pid: 4711 });
    assert_eq!(is_lost.recv_timeout(LEASE * 4), Ok(WriteError::TakenOver { by }));
}

#[test]
#[ignore = "the process that is killed"]
fn holds_a_lease_until_killed() {
    let Some(path) = child::store() else { return };
    let journal = Some(Journal::Rollback);
    let store = OpenMode { journal, ..OpenMode::new(path).unwrap() }.open(|_| true).unwrap();
    loop {
        println!("{}", submit(&store).0);
    }
}

#[test]
fn a_manager_that_was_killed_is_replaced_at_once_on_its_host() {
    let lab = Lab::new();
    for _ in 0..5 {
        let acknowledged = child::killed_after("store::lease::holds_a_lease_until_killed", &lab.path(), 5);
        let opening = OpenMode { journal: Some(Journal::Rollback), ..OpenMode::new(lab.path()).unwrap() };
        let store = opening.open(|_| panic!("it waits")).unwrap();
        assert!(acknowledged.iter().all(|id| all_jobs(&store).contains(id)));
    }
    drop(child::killed_after("store::lease::holds_a_lease_until_killed", &lab.path(), 5));
    // The same host after a restart, on a file system that hosts share: its name proves nothing.
    let host = HostIdentity { boot: "another".to_owned(), ..HostIdentity::of_this_host().unwrap() };
    let mut waits = false;
    let wait = |_: &Holder| {
        waits = true;
        true
    };
    let _store = OpenMode { host, ..from(&lab, "", "") }.open(wait).unwrap();
    assert!(waits);
}

#[test]
fn on_a_local_file_system_a_restarted_host_does_not_wait() {
    let lab = Lab::new();
    let local = |host, boot| OpenMode { journal: Some(Journal::Wal), ..from(&lab, host, boot) };
    drop(local("server", "1").open(|_| true).unwrap());
    for (host, boot) in [("server", "0"), ("container", "1")] {
        leave_row(&lab, host, boot);
        drop(local("server", "1").open(|_| panic!("it waits")).unwrap());
    }
}
