//! The cost of many jobs: accepting them, starting the next one, and a long queue.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::carma::{Manager, Pool, job, submit};
use super::wait_for_marks;

const QUEUED: u32 = 100_000;
/// Calls of each command.
const CALLS: usize = 11;

/// Accepted jobs per second on an idle manager.
pub(super) fn accepted(folder: &Path) {
    const JOBS: usize = 4_000;
    let pool = Pool(Manager::start(folder, ""));
    let mut held = job("true");
    held.schedule.hold = true;
    let began = Instant::now();
    pool.submit_each(JOBS, &held);
    println!("\naccepted, each on the disk: {:.0} jobs/s", JOBS as f64 / began.elapsed().as_secs_f64());
    let mut submit = pool.0.command(&["submit", "--gpus", "0", "--hold", "--", "true"]);
    let mut times: Vec<Duration> = (0..101).map(|_| timed(|| assert!(submit.status().unwrap().success()))).collect();
    times.sort_unstable();
    let [median, p99] = [50, 99].map(|place| milliseconds(times[place]));
    println!("carma submit of one job, from exec to exit: median {median}, p99 {p99}");
}

/// The gap between two jobs on one slot.
pub(super) fn handed_over(folder: &Path) {
    const JOBS: usize = 200;
    let manager = Manager::start(folder, "[manager.limits]\ncpu_jobs = 1\n");
    let marks = folder.join("marks");
    fs::write(&marks, "").unwrap();
    // Each job records its start and its end.
    let times = job(&format!("date +%s%N >> {0}; date +%s%N >> {0}", marks.display()));
    submit(&mut manager.client(), times, Some((1..=JOBS as u32).collect()));
    wait_for_marks(&marks, JOBS * 2 * "1700000000000000000\n".len());
    let times: Vec<u64> = fs::read_to_string(&marks).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    let mut gaps: Vec<Duration> = times[1..].chunks_exact(2).map(|gap| Duration::from_nanos(gap[1] - gap[0])).collect();
    gaps.sort_unstable();
    let at = |share: f64| milliseconds(gaps[(gaps.len() as f64 * share) as usize]);
    println!("from a job's end to the next one's start: median {}, p99 {}", at(0.5), at(0.99));
}

/// Many waiting jobs: the time and memory to accept them as ten arrays and as one, the time of commands, and of a restart.
pub(super) fn queued(folder: &Path) {
    for arrays in [1, 10] {
        let folder = folder.join(arrays.to_string());
        fs::create_dir(&folder).unwrap();
        waiting(&folder, arrays);
    }
}

fn waiting(folder: &Path, arrays: u32) {
    let mut manager = Manager::start(folder, "[manager.limits]\ncpu_jobs = 1\n");
    let first = submit(&mut manager.client(), job("exec sleep 1000"), None).jobs[0].0.to_string();
    let took = timed(|| {
        for _ in 0..arrays {
            submit(&mut manager.client(), job("true"), Some((0..QUEUED / arrays).collect()));
        }
    });
    println!("\n{QUEUED} jobs in {arrays} array(s): accepted in {:.2} s, {} MiB in memory", took.as_secs_f64(), memory(manager.pid()));
    for words in [&["queue"][..], &["status"], &["why", "50000"], &["submit", "--gpus", "0", "--", "true"]] {
        let mut times: Vec<Duration> = (0..CALLS).map(|_| timed(|| assert!(manager.command(words).status().unwrap().success()))).collect();
        times.sort_unstable();
        println!(
            "  carma {:<38} median {:>8}, at most {}",
            words.join(" "),
            milliseconds(times[CALLS / 2]),
            milliseconds(times[CALLS - 1])
        );
    }
    assert!(manager.command(&["cancel", &first]).status().unwrap().success());
    manager.stop();
    let took = timed(|| {
        manager = Manager::start(folder, "");
        drop(manager.client().status().unwrap());
    });
    println!("  started again in {:.2} s, {} MiB in memory", took.as_secs_f64(), memory(manager.pid()));
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn milliseconds(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1000.0)
}

/// Memory of a process, in MiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}
