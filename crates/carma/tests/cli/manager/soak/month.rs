//! A month of jobs through one manager, with old jobs deleted. The clock of emulated GPUs runs an hour in a second.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_manager::client::Client;
use carma_manager::request::JobRequest;

use super::super::crash::nothing_is_left;
use super::super::lab::until;
use super::super::up::{ManagerProcess, one};
use super::number;
use super::readings::{Disk, Readings};

/// Users who submit at the same time.
const SUBMITTERS: u64 = 4;
/// Jobs that wait or run: submitters wait for others above this, as people do.
const AT_ONCE: u64 = 40;
/// One of this many jobs uses a GPU.
const WITH_GPU: u64 = 8;
/// Readings of one run.
const READINGS: u64 = 40;

/// Four GPUs whose hours pass in seconds, and a history of a fraction of the jobs.
fn manager(jobs: u64) -> ManagerProcess {
    let configuration =
        format!("[manager.keep]\ndays = 7\nsample_days = 7\njobs_per_user = {}\n[manager.limits]\ncpu_jobs = 8\n", jobs / 20);
    ManagerProcess::new(Some(("4xA100-40GB", 3600.0)), &configuration)
}

/// A job that notes its number in a journal when it starts and when it ends; the shell's `>>` writes a line at once.
fn job(up: &ManagerProcess, number: u64, journal: &Path) -> JobRequest {
    let mut job = up.shell_job(&format!("echo {number} >>{0}; echo -{number} >>{0}", journal.display()));
    job.resources.gpus = u32::from(number.is_multiple_of(WITH_GPU));
    job.resources.memory = (job.resources.gpus > 0).then_some(carma_core::MiB(4096));
    job.name = Some(format!("job-{number}"));
    job
}

/// Submits jobs until all are submitted, and no more than the manager takes.
fn submit(up: &ManagerProcess, next: &AtomicU64, jobs: u64, journal: &Path) {
    let mut client = up.client();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed) + 1;
        if number > jobs {
            return;
        }
        client.submit(&one(job(up, number, journal))).unwrap();
        if number.is_multiple_of(8) {
            until(|| (waiting(&mut client) < AT_ONCE).then_some(()));
        }
    }
}

fn waiting(client: &mut Client) -> u64 {
    let jobs = client.status().unwrap().jobs;
    jobs.waiting + jobs.running
}

#[test]
#[ignore = "takes long: make soak"]
fn a_month_of_jobs_grows_nothing() {
    let jobs: u64 = number("CARMA_JOBS", 20_000);
    let up = manager(jobs);
    let journal = up.folder().join("journal");
    let next = AtomicU64::new(0);
    let mut readings = Readings::default();
    let begin = Instant::now();
    thread::scope(|scope| {
        let submitters: Vec<_> = (0..SUBMITTERS).map(|_| scope.spawn(|| submit(&up, &next, jobs, &journal))).collect();
        let mut due = 0;
        while !submitters.iter().all(thread::ScopedJoinHandle::is_finished) {
            let submitted = next.load(Ordering::Relaxed).min(jobs);
            if submitted >= due {
                readings.read(&up, submitted);
                due += (jobs / READINGS).max(1);
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    let mut client = up.client();
    until(|| (waiting(&mut client) == 0).then_some(()));
    let took = begin.elapsed().as_secs_f64();
    let emulated_days = took * 3600.0 / 86_400.0;
    eprintln!("{jobs} jobs in {took:.0} s ({:.0} a second); {emulated_days:.0} days on the clock of the GPUs", jobs as f64 / took);
    nothing_is_left(&up);
    let mut lines: BTreeMap<i64, u32> = BTreeMap::new();
    for line in fs::read_to_string(&journal).unwrap().lines() {
        *lines.entry(line.parse().unwrap()).or_default() += 1;
    }
    let once = |number: i64| lines.get(&number) == Some(&1);
    let not_once: Vec<i64> = (1..=jobs.cast_signed()).filter(|number| !once(*number) || !once(-number)).collect();
    assert!(not_once.is_empty() && lines.len() as u64 == 2 * jobs, "did not run exactly once: {not_once:?}");
    readings.assert_flat(Disk::Pruned);
}
