//! A thousand trivial jobs, and ten thousand, from the first submit to the last end, beside task-spooler and pueue in the same run; then the gap between
//! two jobs, and the cost of a hundred thousand waiting jobs. `JOBS` sets one other number of trivial jobs; words after `--` select parts: `trivial`,
//! `accepted`, `handed`, `queued`.

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

/// The most jobs for pueue: it writes its whole queue for each.
const MOST_FOR_PUEUE: usize = 1_000;

/// A part of the benchmark by its name, which runs in a folder.
type Part = (&'static str, fn(&Path));

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| part.contains(word.as_str()));
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = folder.path().join(name);
        fs::create_dir_all(&place).unwrap();
        place
    };
    if is_wanted("trivial") {
        let sizes = std::env::var("JOBS").map_or(vec![1_000, 10_000], |jobs| vec![jobs.parse().unwrap()]);
        for jobs in sizes {
            trivial(jobs, &place(&jobs.to_string()));
        }
    }
    let parts: [Part; 3] = [("accepted", crowd::accepted), ("handed", crowd::handed_over), ("queued", crowd::queued)];
    for (name, measure) in parts.into_iter().filter(|(name, _)| is_wanted(name)) {
        measure(&place(name));
    }
}

/// Trivial jobs with each system. The first one that is installed is the reference.
fn trivial(jobs: usize, folder: &Path) {
    println!("\n{jobs} trivial jobs, {AT_ONCE} at once; load {}", fs::read_to_string("/proc/loadavg").unwrap().trim());
    println!("{:<46} {:>10} {:>14} {:>7} {:>7}", "", "submits/s", "start to end", "x rate", "x time");
    let place = |name: &str| {
        let place = folder.join(name);
        fs::create_dir(&place).unwrap();
        place
    };
    let limit = format!("[manager.limits]\ncpu_jobs = {AT_ONCE}\n");
    let mut reference = None;
    let mut compare = |contender: &dyn Contender| {
        let measured = run(contender, jobs, reference.as_ref());
        reference.get_or_insert(measured);
    };
    match TaskSpooler::start(&place("spooler"), AT_ONCE) {
        Some(spooler) => compare(&spooler),
        None => println!("tsp is not in PATH: not compared (make bench-peers)"),
    }
    compare(&Pool(Manager::start(&place("pool"), &limit)));
    compare(&Submits(Manager::start(&place("submits"), &limit)));
    if jobs > MOST_FOR_PUEUE {
        return;
    }
    match Pueue::start(&place("pueue"), AT_ONCE) {
        Some(pueue) => compare(&pueue),
        None => println!("pueue is not in PATH: not compared (make bench-peers)"),
    }
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
