//! Response times for pages and views with a long history: 64 emulated GPUs, ten thousand jobs, 90 days of minutes.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use carma_emu::{Machine, VARIABLE};
use carma_manager::api::{EnergyKind, EnergyQuery, HistoryOrder, HistoryQuery, QueueQuery, RecentQuery, SampleQuery, Submission};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::{Store, UnixMillis};
use carma_seed::{HistoryOptions, seed};

const GPUS: u16 = 64;
const JOBS: u64 = 10_000;
const DAYS: u64 = 90;
/// Jobs: one per GPU runs, others wait.
const LIVE: u32 = 256;
const CALLS: usize = 40;
/// Limit for one request: a page sends a few, and must appear at once.
const LONGEST: Duration = Duration::from_millis(50);

/// A request of a page.
type Question<'a> = (&'a str, &'a dyn Fn(&mut Client));

struct Site {
    folder: tempfile::TempDir,
    machine: Machine,
    manager: Child,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_carma"));
        let machine = Machine::create(&folder.path().join("machine"), &format!("{GPUS}xA100-40GB").parse().unwrap(), 1.0, Some(program));
        let machine = machine.unwrap();
        let begin = Instant::now();
        let past = HistoryOptions { jobs: JOBS, days: DAYS, gpus: GPUS, seed: 1, until: UnixMillis::now() };
        let seeded = seed(&Store::open(Places::at(folder.path()).database()).unwrap(), &past).unwrap();
        println!(
            "\n{JOBS} jobs, {} attempts and {} minutes of {GPUS} GPUs, seeded in {:.0?}",
            seeded.attempts,
            seeded.minutes,
            begin.elapsed()
        );
        let mut command = Command::new(program);
        command.arg("up").arg("--state").arg(folder.path()).env(VARIABLE, machine.folder());
        let manager = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { folder, machine, manager }
    }

    fn client(&self) -> Client {
        until(|| Client::at(Address::Socket(Places::at(self.folder.path()).socket)).ok())
    }

    /// Some jobs run, and some wait.
    fn fill(&self, client: &mut Client) {
        let train = format!("exec {} emu train --workload dlrm_criteo_bs32768 --memory 9000 --seconds 100000", env!("CARGO_BIN_EXE_carma"));
        let mut request = JobRequest::new(JobCommand::Program(["sh", "-c", &train].map(str::to_owned).to_vec()), self.folder.path());
        request.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        request.resources.memory = Some(carma_core::MiB(19_000));
        let array = Some((0..LIVE).collect());
        client.submit(&Submission { job: request, array, parameters: Vec::new() }).unwrap();
        until(|| (client.status().unwrap().jobs.running >= u64::from(GPUS)).then_some(()));
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

fn main() {
    let site = Site::new();
    let client = &mut site.client();
    site.fill(client);
    until(|| client.recent(&RecentQuery::default()).unwrap().first().filter(|looks| looks.at.len() >= 60).map(drop));
    let now = client.status().unwrap().now;
    let ago = |days: u64| Some(UnixMillis(now.0 - days * 86_400_000));
    let search = |text: &str| HistoryQuery { text: Some(text.to_owned()), limit: Some(50), ..HistoryQuery::default() };
    let energy = |by| EnergyQuery { by, ahead: 60, user: None, since: ago(30), until: None };
    let page = HistoryQuery { limit: Some(50), ..HistoryQuery::default() };
    let over = HistoryQuery { order: HistoryOrder::Ended, limit: Some(10), ..HistoryQuery::default() };
    let questions: [Question<'_>; 16] = [
        ("status", &|client| drop(client.status().unwrap())),
        ("64 GPUs", &|client| drop(client.gpus().unwrap())),
        ("recent looks at 64 GPUs, 60 points", &|client| {
            assert_eq!(client.recent(&RecentQuery { points: Some(60), ..RecentQuery::default() }).unwrap().len(), usize::from(GPUS));
        }),
        ("recent looks at one GPU, all", &|client| {
            drop(client.recent(&RecentQuery { gpu: Some("3".to_owned()), ..RecentQuery::default() }).unwrap());
        }),
        ("queue", &|client| drop(client.queue(&QueueQuery::default()).unwrap())),
        ("a page of history", &|client| assert_eq!(client.history(&page).unwrap().len(), 50)),
        ("recently finished jobs", &|client| assert_eq!(client.history(&over).unwrap().len(), 10)),
        ("history searched: many match", &|client| assert_eq!(client.history(&search("bert")).unwrap().len(), 50)),
        ("history searched: none matches", &|client| assert!(client.history(&search("no such job")).unwrap().is_empty())),
        ("a job that is over", &|client| drop(client.job("5000").unwrap())),
        ("a job that runs", &|client| drop(client.job("last").unwrap())),
        ("timeline of an hour", &|client| drop(client.timeline("3", &SampleQuery::default()).unwrap())),
        ("timeline of a day", &|client| {
            assert!(client.timeline("3", &SampleQuery { since: ago(1), until: None }).unwrap().minutes.len() > 1400);
        }),
        ("timeline of 90 days", &|client| drop(client.timeline("3", &SampleQuery { since: ago(90), until: None }).unwrap())),
        ("energy by user, 30 days", &|client| drop(client.energy(&energy(EnergyKind::User)).unwrap())),
        ("energy by day, 30 days", &|client| drop(client.energy(&energy(EnergyKind::Day)).unwrap())),
    ];
    println!("{:<40} {:>10} {:>10}", "question, over the socket", "median ms", "worst ms");
    let mut slow = Vec::new();
    for (name, ask) in questions {
        let mut times: Vec<Duration> = (0..CALLS).map(|_| timed(|| ask(client))).collect();
        times.sort_unstable();
        let (median, worst) = (times[CALLS / 2], times[CALLS - 1]);
        println!("{name:<40} {:>10.2} {:>10.2}", median.as_secs_f64() * 1000.0, worst.as_secs_f64() * 1000.0);
        slow.extend((median > LONGEST).then_some(name));
    }
    assert!(slow.is_empty(), "too slow for a page: {slow:?}");
}

fn timed(call: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}
