//! Many attempts at once, and how soon each end is noticed.

use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use carma_manager::attempt::Exit;
use carma_manager::heartbeat::{Heartbeats, Part};
use carma_manager::supervise::{AttemptState, ExitWatch, Supervised};

use super::{TIMEOUT, attempt, launch, order, running};

#[test]
fn two_hundred_simultaneous_exits_are_noticed() {
    const ATTEMPTS: u64 = 200;
    let state = tempfile::tempdir().unwrap();
    let (sender, exits) = mpsc::channel();
    let watch = ExitWatch::new(Heartbeats::default().start(Part::Exits), move |attempt, standing| {
        sender.send((attempt, standing, SystemTime::now())).unwrap();
    })
    .unwrap();
    let begin = Instant::now();
    let supervised: Vec<_> = (0..ATTEMPTS).map(|job| running(&launch(&state, order(job, &["sleep", "3600"])))).collect();
    let launched = begin.elapsed();
    let end = |supervised: &Supervised| supervised.signal(carma_core::Signal::Terminate).unwrap();
    for (job, supervised) in (0..).zip(&supervised) {
        watch.add(attempt(job), supervised.clone()).unwrap();
    }
    let mut delays = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    // Half of them one by one, to see how soon an end is noticed; the others all at once.
    for job in 0..ATTEMPTS {
        match job {
            0..100 => end(&supervised[job as usize]),
            100 => supervised[100..].iter().for_each(end),
            _ => {}
        }
        let (attempt, standing, noticed) = exits.recv_timeout(TIMEOUT).unwrap();
        let Ok(AttemptState::Ended(ended)) = standing else { panic!("{standing:?}") };
        assert_eq!(ended.exit, Exit::Signal(15));
        assert!(seen.insert(attempt), "reported twice");
        delays.push(noticed.duration_since(ended.ended).unwrap_or_default());
    }
    assert!(exits.recv_timeout(Duration::from_millis(10)).is_err(), "reported too often");
    let (alone, together) = delays.split_at_mut(100);
    alone.sort();
    together.sort();
    println!("launch: {:?} each", launched / 200);
    println!("exit to notice: {:?} (median of one by one), {:?} (the last of 100 at once)", alone[50], together[99]);
    // Generous: machines that run tests are busy.
    assert!(alone[50] < Duration::from_secs(5), "{alone:?}");
}
