//! Response times of every page, view and command with a long history and a long queue: 64 emulated GPUs, 90 days of minutes.
//!
//! `FINISHED` and `WAITING` set the numbers of jobs (`make bench`: 10,000 and 256). Everything is measured twice: with a queue that only waits, and
//! while [`RATE`] jobs a second are submitted, run and end. `STORE` names a folder in which the history is kept for the next run.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{RecentQuery, Submission};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::{Store, UnixMillis};
use carma_seed::{HistoryOptions, seed};
use serde::de::IgnoredAny;

const GPUS: u16 = 64;
const DAYS: u64 = 90;
const DAY: u64 = 86_400_000;
/// Calls of each question, and of each command.
const CALLS: usize = 100;
const COMMANDS: usize = 20;
/// Limit for 99 of 100 requests: a page sends a few, and must appear at once.
const LONGEST: Duration = Duration::from_millis(50);
/// Jobs a second in the second part.
const RATE: u32 = 100;

/// A number from the environment.
fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |number| number.parse().unwrap())
}

struct Site {
    folder: PathBuf,
    waiting: u32,
    _temporary: tempfile::TempDir,
    machine: Machine,
    manager: Child,
}

impl Site {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("state");
        let (finished, waiting) = (number("FINISHED", 10_000), number("WAITING", 256) as u32);
        let kept = std::env::var_os("STORE").map_or_else(|| folder.clone(), PathBuf::from);
        let begin = Instant::now();
        if !Places::at(&kept).database().exists() {
            let past = HistoryOptions { jobs: finished, days: DAYS, gpus: GPUS, seed: 1, until: UnixMillis::now() };
            seed(&Store::open(Places::at(&kept).database()).unwrap(), &past).unwrap();
        }
        if kept != folder {
            std::fs::create_dir(&folder).unwrap();
            std::fs::copy(Places::at(&kept).database(), Places::at(&folder).database()).unwrap();
        }
        let program = Path::new(env!("CARGO_BIN_EXE_carma"));
        let machine = Machine::create(&temporary.path().join("machine"), &format!("{GPUS}xA100-40GB").parse().unwrap(), 1.0, Some(program));
        let machine = machine.unwrap();
        println!("\n{finished} finished jobs and {DAYS} days of {GPUS} GPUs, seeded or copied in {:.0?}", begin.elapsed());
        let mut command = Command::new(program);
        command.arg("up").arg("--state").arg(&folder).env(VARIABLE, machine.folder());
        let manager = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { folder, waiting, _temporary: temporary, machine, manager }
    }

    fn client(&self) -> Client {
        until(|| Client::at(Address::Socket(Places::at(&self.folder).socket)).ok())
    }

    /// Some jobs run, and some wait.
    fn fill(&self, client: &mut Client) {
        let train = format!("exec {} emu train --workload dlrm_criteo_bs32768 --memory 9000 --seconds 100000", env!("CARGO_BIN_EXE_carma"));
        let mut request = JobRequest::new(JobCommand::Program(["sh", "-c", &train].map(str::to_owned).to_vec()), &self.folder);
        request.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        request.resources.memory = Some(carma_core::MiB(19_000));
        let array = Some((0..self.waiting + u32::from(GPUS)).collect());
        client.submit(&Submission { job: request, array, parameters: Vec::new() }).unwrap();
        until(|| (client.status().unwrap().jobs.running >= u64::from(GPUS)).then_some(()));
    }

    /// Keeps [`RATE`] jobs a second running, beside the ones that wait for GPUs.
    fn run_jobs(&self, ends: &AtomicBool) {
        let client = &mut self.client();
        let mut job = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
        job.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        job.resources.gpus = 0;
        let begin = Instant::now();
        for number in 0.. {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            client.submit(&Submission { job: job.clone(), array: None, parameters: Vec::new() }).unwrap();
            thread::sleep((Duration::from_secs(1) * number / RATE).saturating_sub(begin.elapsed()));
        }
    }

    /// A command for this manager.
    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        let socket = Places::at(&self.folder).socket;
        command.args(words.split(' ')).env_remove("CARMA_HOST").env("CARMA_SOCKET", socket).stdout(Stdio::null());
        command
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Without their GPUs, jobs end.
        let _ = Machine::remove(self.machine.folder());
        let _ = self.manager.kill();
        let _ = self.manager.wait();
    }
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "it did not come to that");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What pages and views ask, by path. `last` is the array that waits.
fn questions(array: u64, first: u64, now: UnixMillis) -> Vec<String> {
    let ago = |days: u64| now.0 - days * DAY;
    let history = [
        String::new(),
        "&order=ended".to_owned(),
        "&before=1000".to_owned(),
        format!("&user={first}"),
        format!("&user={first}&before=1000"),
        "&user=1".to_owned(),
        "&state=running".to_owned(),
        "&state=queued".to_owned(),
        "&state=done".to_owned(),
        "&name=bert".to_owned(),
        "&name=no-such-job".to_owned(),
        "&text=bert".to_owned(),
        "&text=alice".to_owned(),
        "&text=no-such-job".to_owned(),
        "&text=zz".to_owned(),
        format!("&text=resnet50&user={first}"),
        format!("&array={array}"),
        format!("&array={array}&before={}", array + 200),
        format!("&since={}", ago(1)),
        format!("&until={}", ago(DAYS - 1)),
        format!("&since={}&until={}&user={first}", ago(60), ago(59)),
    ];
    let outcomes = ["succeeded", "failed", "oom", "time_limit", "cancelled", "lost", "not_started"];
    let outcomes = outcomes.iter().flat_map(|outcome| [format!("&outcome={outcome}"), format!("&outcome={outcome}&user={first}")]);
    let history = history.into_iter().chain(outcomes).map(|rest| format!("/v1/history?limit=50{rest}"));
    let periods = |path: &str, rest: &str| {
        let since = [1, 7, 30].map(|days| format!("{path}?since={}{rest}", ago(days)));
        since.into_iter().chain([format!("{path}?{rest}")]).collect::<Vec<_>>()
    };
    let others = [
        "/v1/status",
        "/v1/me",
        "/v1/policies",
        "/v1/configuration",
        "/v1/gpus",
        "/v1/servers",
        "/v1/pools",
        "/v1/shares",
        "/v1/notifications",
        "/v1/recent?points=60",
        "/v1/recent?gpu=3",
        "/v1/gpus/3/samples",
        "/v1/gpus/3/timeline",
        "/v1/queue",
        "/v1/queue?limit=100",
        "/v1/queue?user=1",
        "/v1/jobs/5000",
        "/v1/jobs/last",
        "/v1/jobs/5000/why",
        "/v1/users/root",
    ];
    let array_questions = [
        format!("/v1/queue?limit=100&after=queued-{}-{}", array / 2, array + 500),
        format!("/v1/arrays?ids={array}"),
        format!("/v1/jobs/{}", array + 200),
        format!("/v1/jobs/{array}_200"),
        format!("/v1/jobs/{}/why", array + 200),
        format!("/v1/gpus/3/samples?since={}", ago(1)),
        format!("/v1/gpus/3/timeline?since={}", ago(1)),
        format!("/v1/gpus/3/timeline?since={}", ago(DAYS)),
    ];
    let energy = ["&by=user", "&by=day&ahead=60", "&by=day&ahead=-210"].into_iter().flat_map(|by| periods("/v1/energy", by));
    let all = others.into_iter().map(str::to_owned).chain(array_questions).chain(history);
    all.chain(periods("/v1/users", "")).chain(energy).collect()
}

/// What users type.
fn commands(array: u64) -> Vec<String> {
    let plain = [
        "queue",
        "queue --mine",
        "history",
        "history --outcome failed",
        "history --name bert",
        "history --search no-such-job",
        "history --since 1d",
        "show 5000",
        "status",
        "energy --by day",
        "usage",
    ];
    plain.into_iter().map(str::to_owned).chain([format!("show {}", array + 200), format!("why {}", array + 200)]).collect()
}

/// Measures something often; prints it if it is slow or told to, and answers whether 99 of 100 are fast enough.
fn measure(name: &str, calls: usize, mut call: impl FnMut()) -> bool {
    let mut times: Vec<Duration> = (0..calls).map(|_| timed(&mut call)).collect();
    times.sort_unstable();
    let (median, slow) = (times[calls / 2], times[calls - 1 - calls / 100]);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{name:<70} {:>9.2} {:>9.2} {:>9.2}", milliseconds(median), milliseconds(slow), milliseconds(times[calls - 1]));
    slow <= LONGEST
}

fn main() {
    let site = Site::new();
    let client = &mut site.client();
    site.fill(client);
    until(|| client.recent(&RecentQuery::default()).unwrap().first().filter(|looks| looks.at.len() >= 30).map(drop));
    let now = client.status().unwrap().now;
    let array = client.job("last").unwrap().array.unwrap().array.0;
    let first = 60_101;
    let ends = AtomicBool::new(false);
    let mut slow = Vec::new();
    thread::scope(|scope| {
        for busy in [false, true] {
            if busy {
                scope.spawn(|| site.run_jobs(&ends));
            }
            let load = std::fs::read_to_string("/proc/loadavg").unwrap();
            println!("\nwhile {} jobs a second run; load {}", if busy { RATE } else { 0 }, load.trim());
            println!("{:<70} {:>9} {:>9} {:>9}", "question, over the socket", "median ms", "p99 ms", "worst ms");
            for path in questions(array, first, now) {
                if !measure(&path, CALLS, || assert!(client.get::<IgnoredAny>(&path).is_ok())) {
                    slow.push((busy, path));
                }
            }
            if !measure("/metrics", CALLS, || drop(client.metrics().unwrap())) {
                slow.push((busy, "/metrics".to_owned()));
            }
            for words in commands(array) {
                let name = format!("carma {words}");
                if !measure(&name, COMMANDS, || assert!(site.command(&words).status().unwrap().success())) {
                    slow.push((busy, name));
                }
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(slow.is_empty(), "slower than {LONGEST:?} for 1 of 100, while jobs run or not: {slow:#?}");
}

fn timed(call: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}
