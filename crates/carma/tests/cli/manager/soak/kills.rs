//! Managers, shims and guards are killed at random moments under load, for as long as `make soak` says.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::super::crash::{kill_a_supervisor, manager, seed, under_load};
use super::number;
use super::readings::{Disk, Readings};

/// Readings of one run.
const READINGS: u64 = 40;

#[test]
#[ignore = "takes long: make soak"]
fn after_many_random_kills_every_job_has_ended_once_and_nothing_has_grown() {
    let kills: u64 = number("CARMA_KILLS", 1_000);
    let mut up = manager();
    let (mut managers, mut supervisors) = (0, 0);
    let mut readings = Readings::default();
    let mut due = 0;
    let details = under_load(&mut up, kills, |up, random| {
        thread::sleep(Duration::from_millis(random.u64(0..150)));
        let killed = if random.u32(0..3) == 0 {
            up.kill();
            up.spawn();
            managers += 1;
            1
        } else {
            kill_a_supervisor(up, random)
        };
        supervisors += killed;
        if random.bool() {
            up.ready();
        }
        if supervisors >= due {
            up.ready();
            readings.read(up, supervisors);
            due += (kills / READINGS).max(1);
        }
        killed
    });
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for detail in &details {
        *outcomes.entry(detail.outcome().unwrap().to_string()).or_default() += 1;
    }
    let attempts: usize = details.iter().map(|detail| detail.attempts.len()).sum();
    eprintln!(
        "seed {}: {managers} managers and {} shims and guards killed, {} jobs with {attempts} attempts: {outcomes:#?}",
        seed(),
        supervisors - managers,
        details.len()
    );
    readings.assert_flat(Disk::Kept);
}
