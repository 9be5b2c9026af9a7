//! Faults at every call of the kernel for the store and the folders of attempts: nothing acknowledged is lost, nothing runs twice, and every job ends in
//! a state that says why.
//!
//! `strace` injects the faults, so they reach SQLite, the standard library and direct system calls alike. Each thread counts its own calls.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{JobId, Outcome};
use carma_manager::api::JobAction;
use carma_manager::client::Client;
use carma_testing::{need, program};

use super::up::{ManagerProcess, one};

/// The calls that can fail.
const CALLS: &[&str] = &[
    "openat",
    "pwrite64",
    "write",
    "pread64",
    "read",
    "fdatasync",
    "fsync",
    "ftruncate",
    "fallocate",
    "rename",
    "unlink",
    "mkdir",
    "statx",
    "flock",
    "mmap",
];
/// What happens to one of them, in the words of strace.
const EFFECTS: &[&str] = &["error=EIO", "error=ENOSPC", "delay_enter=400000"];
/// The jobs of a run.
const JOBS: u64 = 3;
/// The files in the folder of an attempt.
const FILES: &[&str] = &[
    "",
    "lock",
    "order.json",
    "order.json.new",
    "shim.pid",
    "shim.pid.new",
    "exit.json",
    "exit.json.new",
    "stdout.log",
    "stderr.log",
    "progress",
    "shim.log",
];

/// A fault: the n-th use of this call in each thread.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: &'static str,
    effect: &'static str,
    number: u32,
}

impl Fault {
    /// The start of a command line under which a manager has this fault.
    fn tracer(self, up: &ManagerProcess) -> Vec<String> {
        let Self { call, effect, number } = self;
        let state = up.state();
        let stored = ["carma.db", "carma.db-wal", "carma.db-shm", "attempts"].map(|name| state.join(name));
        let folders = (1..=JOBS).map(|job| state.join(format!("attempts/{job}/1")));
        let of_attempts =
            folders.flat_map(|folder| FILES.iter().map(move |file| if file.is_empty() { folder.clone() } else { folder.join(file) }));
        let paths = stored.into_iter().chain(of_attempts).flat_map(|path| ["-P".to_owned(), path.display().to_string()]);
        let inject = [format!("trace={call}"), format!("inject={call}:{effect}:when={number}")]
            .into_iter()
            .flat_map(|expression| ["-e".to_owned(), expression]);
        // The tracer is no parent of the manager, so that the manager can be killed by its number.
        let log = up.folder().join("trace").display().to_string();
        ["strace", "-f", "-D", "-q", "-o", &log].map(str::to_owned).into_iter().chain(paths).chain(inject).collect()
    }

    /// Runs some jobs with this fault and a kill of the manager. Returns whether there was a fault at all.
    fn run(self) -> bool {
        let mut up = ManagerProcess::stopped(None, "");
        up.run_under(self.tracer(&up));
        up.spawn();
        let acknowledged = requests(&mut up);
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until && !up.has_ended() && !all_over(&up, &acknowledged) {
            thread::sleep(Duration::from_millis(20));
        }
        up.kill();
        let injected =
            fs::read_to_string(up.folder().join("trace")).is_ok_and(|trace| trace.contains("(INJECTED)") || trace.contains("(DELAYED)"));
        up.run_under(Vec::new());
        up.start();
        self.check(&up, &acknowledged);
        injected
    }

    fn check(self, up: &ManagerProcess, acknowledged: &BTreeMap<u64, Option<JobId>>) {
        let journal = || fs::read_to_string(up.folder().join("journal")).unwrap_or_default();
        for (number, job) in acknowledged {
            let starts = || journal().lines().filter(|line| **line == *format!("start {number}")).count();
            let Some(job) = job else {
                assert!(starts() <= 1, "{self:?}: a refused job ran {} times", starts());
                continue;
            };
            if *number == JOBS {
                // The first cancellation may have failed.
                let _ = up.client().act(&job.0.to_string(), &JobAction::Cancel);
            }
            let detail = up.wait_until_done(*job);
            if detail.outcome() == Some(&Outcome::Succeeded) {
                assert_eq!(starts(), 1, "{self:?}: {job} succeeded");
            } else {
                assert!(starts() <= 1, "{self:?}: {job} ran {} times", starts());
                let text = &detail.ending.as_ref().unwrap().text;
                assert!(!text.is_empty(), "{self:?}: {job} does not say why it ended");
            }
        }
        let log = up.log_text();
        assert!(!log.contains("panicked"), "{self:?}: {log}");
        // The store works again.
        let job = up.submit(up.shell_job("true"));
        assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Succeeded), "{self:?}");
    }
}

/// Submits jobs and cancels one. Returns the answers by the numbers that the jobs write to a journal of their own.
fn requests(up: &mut ManagerProcess) -> BTreeMap<u64, Option<JobId>> {
    let until = Instant::now() + Duration::from_secs(5);
    let mut client = loop {
        match Client::at(up.address()) {
            Ok(client) => break client,
            // A manager that cannot start has said why.
            Err(_) if Instant::now() > until || up.has_ended() => return BTreeMap::new(),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut submit = |number: u64| {
        let script = format!("echo start {number} >> journal");
        let mut job = up.shell_job(&script);
        job.schedule.hold = number == JOBS;
        let answer = client.submit(&one(job)).ok().map(|accepted| accepted.jobs[0]);
        if let Some(held) = answer.filter(|_| number == JOBS) {
            let _ = client.act(&held.0.to_string(), &JobAction::Cancel);
        }
        (number, answer)
    };
    (1..=JOBS).map(&mut submit).collect()
}

fn all_over(up: &ManagerProcess, acknowledged: &BTreeMap<u64, Option<JobId>>) -> bool {
    let Ok(mut client) = Client::at(up.address()) else { return false };
    let mut jobs = acknowledged.values().flatten();
    jobs.all(|job| client.job(&job.0.to_string()).is_ok_and(|detail| detail.outcome().is_some()))
}

/// A few faults at each run of the tests.
#[test]
fn a_fault_of_the_disk_loses_nothing_and_runs_nothing_twice() {
    need!(program("strace"));
    let some = [("pwrite64", 1), ("pwrite64", 4), ("fdatasync", 2), ("openat", 3), ("write", 2), ("rename", 1), ("ftruncate", 1)];
    for (call, number) in some {
        Fault { call, effect: "error=EIO", number }.run();
    }
}

/// Every call of a small run, one at a time: `make faults`.
#[test]
#[ignore = "takes long"]
fn a_fault_at_any_call_loses_nothing_and_runs_nothing_twice() {
    let mut faults = BTreeMap::new();
    for call in CALLS {
        for effect in EFFECTS {
            let runs = (1..10_000).take_while(|number| Fault { call, effect, number: *number }.run()).count();
            println!("{call} {effect}: {runs} faults");
            faults.insert((call, effect), runs);
        }
    }
    println!("{} faults in all", faults.values().sum::<usize>());
    assert!(faults.values().filter(|runs| **runs > 0).count() > CALLS.len());
}
