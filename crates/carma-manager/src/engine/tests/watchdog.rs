//! The watchdog with a stuck engine and with a busy one.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use super::lab::{Lab, RunningLab, submission};
use crate::api::Status;
use crate::heartbeat::{Part, Stuck};
use crate::watchdog::watch;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Healthy checks, and the end of the manager.
fn watched(lab: &RunningLab, limit: Option<Duration>) -> (Receiver<()>, Receiver<Stuck>) {
    let ((healthy, checks), (end, ends)) = (channel(), channel());
    let healthy = move || _ = healthy.send(());
    watch(lab.handle.heartbeats(), limit, healthy, move |stuck| _ = end.send(stuck)).unwrap();
    (checks, ends)
}

fn status(lab: &RunningLab) -> Status {
    Builder::new_current_thread().build().unwrap().block_on(lab.handle.status()).unwrap()
}

#[test]
fn a_stuck_engine_ends_the_manager_after_the_limit() {
    let lab = Lab::new().run();
    let limit = Duration::from_secs(4);
    let (checks, ends) = watched(&lab, Some(limit));
    checks.recv_timeout(TIMEOUT).unwrap();
    lab.executor.hang(true);
    let (job, _answer) = submission(0);
    lab.handle.inputs.send(job).unwrap();
    let stuck = ends.recv_timeout(TIMEOUT).unwrap();
    assert!(stuck.part == Part::Engine && stuck.silent >= limit, "{stuck}");
    assert_eq!(lab.handle.stuck(), Some(stuck), "clients are told");
    lab.executor.hang(false);
}

#[test]
fn a_busy_engine_is_left_alone() {
    let lab = Lab::new().run();
    let limit = Duration::from_secs(3);
    let (checks, ends) = watched(&lab, Some(limit));
    let until = Instant::now() + limit * 2;
    while Instant::now() < until {
        let (job, _answer) = submission(0);
        lab.handle.inputs.send(job).unwrap();
        assert_eq!(status(&lab).problems, <[String; 0]>::default());
    }
    assert!(ends.try_recv().is_err() && checks.try_iter().count() >= 3);
}

#[test]
fn without_a_limit_a_stuck_part_is_reported_until_it_responds() {
    let lab = Lab::new().run();
    let exits = lab.handle.heartbeats().start(Part::Exits);
    let (_checks, ends) = watched(&lab, None);
    let until = Instant::now() + TIMEOUT;
    let problems = loop {
        let problems = status(&lab).problems;
        if !problems.is_empty() || Instant::now() > until {
            break problems;
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert!(matches!(problems.as_slice(), [one] if one.starts_with("the exit watch has not responded for")), "{problems:?}");
    exits.beat();
    while !status(&lab).problems.is_empty() {
        assert!(Instant::now() < until, "it responds again");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(ends.try_recv().is_err());
}
