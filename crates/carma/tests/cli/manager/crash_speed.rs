//! Time to restart a manager, and to start the next job. The bounds are generous, as test machines are busy; measurements are printed.

use std::fs;
use std::time::{Duration, Instant};

use carma_core::Outcome;
use carma_manager::api::Submission;

use super::lab::until;
use super::up::{ManagerProcess, one};

#[test]
fn a_manager_with_ten_thousand_waiting_jobs_restarts_fast() {
    const JOBS: u32 = 10_000;
    let mut up = ManagerProcess::new(None, "");
    let mut job = up.shell_job("true");
    // There are no GPUs here, so that they wait.
    job.resources.gpus = 1;
    job.schedule.wait_for_hardware = true;
    let submit = Submission { array: Some((0..JOBS).collect()), ..one(job) };
    assert_eq!(up.client().submit(&submit).unwrap().jobs.len() as u32, JOBS);
    up.kill();
    let begin = Instant::now();
    up.start();
    let took = begin.elapsed();
    eprintln!("back with {JOBS} waiting jobs after {took:?}");
    assert_eq!(up.client().status().unwrap().jobs.waiting, u64::from(JOBS));
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn the_next_job_runs_soon_after_the_last_has_ended() {
    const JOBS: usize = 30;
    let up = ManagerProcess::new(Some(("1xA100-40GB", 60.0)), "policy = \"exclusive\"\n");
    let times = up.folder().join("times");
    let mut job = up.shell_job(&format!("date +%s%N >> {0}; sleep 0.02; date +%s%N >> {0}", times.display()));
    job.resources.gpus = 1;
    let jobs: Vec<_> = (0..JOBS).map(|_| up.submit(job.clone())).collect();
    until(|| Some(fs::read_to_string(&times).unwrap_or_default().lines().count()).filter(|lines| *lines == 2 * JOBS));
    assert!(jobs.into_iter().all(|job| up.wait_until_done(job).outcome() == Some(&Outcome::Succeeded)));
    let text = fs::read_to_string(times).unwrap();
    let times: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(times.is_sorted(), "one after the other");
    let mut gaps: Vec<Duration> = times[1..].chunks(2).filter_map(|gap| Some(Duration::from_nanos(gap.get(1)? - gap[0]))).collect();
    gaps.sort_unstable();
    let (median, late) = (gaps[gaps.len() / 2], gaps[gaps.len() * 95 / 100]);
    eprintln!("from the end of a job to the start of the next: {median:?}, and {late:?} in the slowest twentieth");
    assert!(median < Duration::from_secs(5), "{median:?}");
}
