//! A thousand trivial jobs (`JOBS` sets another number), from the first submit to the last end, beside pueue and task-spooler in the same run; then the
//! cost of a hundred thousand waiting jobs, and the gap between two jobs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

mod carma;
mod crowd;
mod peers;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use carma::{Manager, Pool, Submits};
use peers::{Pueue, TaskSpooler};

/// Concurrent jobs of each system.
const AT_ONCE: u32 = 4;
/// Concurrent submitters.
const SUBMITTERS: usize = 16;

/// A system that runs jobs.
trait Contender {
    fn name(&self) -> &'static str;
    /// What is on the disk when, and which processes jobs depend on.
    fn guarantees(&self) -> &'static str;
    /// Submits this many jobs with a shell command; returns when all are accepted.
    fn submit(&self, jobs: usize, command: &str);
    /// Waits until it reports that all have ended.
    fn settle(&self) {}
}

fn main() {
    let jobs = std::env::var("JOBS").map_or(1_000, |jobs| jobs.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        place
    };
    println!("\n{jobs} trivial jobs, {AT_ONCE} at once; load {}", fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!("{:<46} {:>10} {:>14} {:>7} {:>7}", "", "submits/s", "start to end", "x rate", "x time");
    let limit = format!("[manager.limits]\ncpu_jobs = {AT_ONCE}\n");
    let reference = run(&Pool(Manager::start(&place("pool"), &limit)), jobs, None);
    run(&Submits(Manager::start(&place("submits"), &limit)), jobs, Some(&reference));
    match Pueue::start(&place("pueue"), AT_ONCE) {
        Some(pueue) => drop(run(&pueue, jobs, Some(&reference))),
        None => println!("pueue is not in PATH: not compared (make bench-peers)"),
    }
    match TaskSpooler::start(&place("spooler"), AT_ONCE) {
        Some(spooler) => drop(run(&spooler, jobs, Some(&reference))),
        None => println!("tsp is not in PATH: not compared (make bench-peers)"),
    }
    crowd::accepted(&place("accepted"));
    crowd::handed_over(&place("handed"));
    crowd::queued(&place("queued"));
}

/// How fast jobs were accepted, and how long all took.
struct Measured {
    rate: f64,
    took: Duration,
}

fn run(contender: &dyn Contender, jobs: usize, reference: Option<&Measured>) -> Measured {
    let marks = tempfile::NamedTempFile::new().unwrap();
    let began = Instant::now();
    contender.submit(jobs, &format!("echo >> {}", marks.path().display()));
    let rate = jobs as f64 / began.elapsed().as_secs_f64();
    wait_for_marks(marks.path(), jobs);
    contender.settle();
    let measured = Measured { rate, took: began.elapsed() };
    let reference = reference.unwrap_or(&measured);
    println!(
        "{:<46} {rate:>10.0} {:>12.2} s {:>7.2} {:>7.2}",
        contender.name(),
        measured.took.as_secs_f64(),
        rate / reference.rate,
        measured.took.as_secs_f64() / reference.took.as_secs_f64()
    );
    println!("    {}", contender.guarantees());
    measured
}

/// Each job leaves a byte.
fn wait_for_marks(file: &Path, jobs: usize) {
    until(Duration::from_millis(5), || fs::metadata(file).unwrap().len() >= jobs as u64);
}

fn until(pause: Duration, mut over: impl FnMut() -> bool) {
    const TIMEOUT: Duration = Duration::from_secs(600);
    let end = Instant::now() + TIMEOUT;
    while !over() {
        assert!(Instant::now() < end, "waited in vain");
        thread::sleep(pause);
    }
}

/// Calls a function this many times, from all submitters at once.
fn share_out(times: usize, act: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for first in 0..SUBMITTERS {
            let act = &act;
            scope.spawn(move || (first..times).step_by(SUBMITTERS).for_each(act));
        }
    });
}
