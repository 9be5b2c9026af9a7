//! The delay of a user while another one sends a hundred times as many requests to the same manager. Needs root.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_core::{JobId, Priority, UserId};
use carma_manager::api::{HistoryQuery, JobAction, JobChange, LogQuery, QueueQuery, Shutdown, Submission};
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};
use carma_testing::{NOBODY, root, thread_as};

/// The user with the load, and the one who is measured: `daemon` and `nobody`.
const BUSY: u32 = 1;
const QUIET: u32 = NOBODY;
/// Jobs in the array of the busy user, unless the variable JOBS says otherwise.
const ARRAY: u32 = 100_000;
/// Duration of each measurement; longer for the fewest rounds, and at most this long.
const MEASURED: Duration = Duration::from_secs(8);
const ROUNDS: usize = 25;
const MAX_MEASURED: Duration = Duration::from_secs(60);
/// Limit for the 99th percentile on a quiet machine.
const LONGEST: Duration = Duration::from_millis(100);
/// What the measured user does in each round.
const CALLS: [&str; 3] = ["submit", "queue", "cancel"];

/// A load: its name, its parallel clients, and what each repeats.
type Load = (&'static str, usize, fn(&mut Client, &Jobs));

/// The jobs of the busy user.
#[derive(Debug, Clone, Copy)]
struct Jobs {
    array: JobId,
    /// Runs, and has a log.
    runs: JobId,
}

const LOADS: [Load; 6] = [
    ("large array changed", 10, |client, jobs| {
        let change = JobChange { priority: Some(Priority(-1)), ..JobChange::default() };
        let _ = client.act(&jobs.array.0.to_string(), &JobAction::Change(change));
    }),
    ("queue listed", 30, |client, _| drop(client.queue(&QueueQuery { limit: Some(1000), ..QueueQuery::default() }))),
    ("events replayed from 0", 20, |client, _| {
        if let Ok(events) = client.events(Some(0)) {
            let until = Instant::now() + Duration::from_secs(2);
            events.take_while(|event| event.is_ok() && Instant::now() < until).for_each(drop);
        }
    }),
    ("history searched", 10, |client, _| {
        drop(client.history(&HistoryQuery { text: Some("no such job".to_owned()), ..HistoryQuery::default() }));
    }),
    ("arrays of 100 submitted", 10, |client, _| drop(client.submit(&submission(true, Some(100))))),
    ("logs followed", 20, |client, jobs| {
        if let Ok(mut log) = client.logs(&jobs.runs.0.to_string(), LogQuery { follow: true, ..LogQuery::default() }) {
            let (mut piece, until) = ([0; 64], Instant::now() + Duration::from_secs(2));
            while Instant::now() < until && std::io::Read::read(&mut log, &mut piece).is_ok_and(|read| read > 0) {}
        }
    }),
];

struct Manager {
    process: Child,
    socket: PathBuf,
}

impl Manager {
    fn start(folder: &Path) -> Self {
        // Another program can be measured for comparison.
        let program = std::env::var_os("CARMA_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_carma").into());
        let mut command = Command::new(program);
        command.args(["up", "--no-gpus", "--state"]).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        Self { process, socket: Places::at(folder).socket }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = connect(&self.socket).shutdown(Shutdown::default());
        let _ = self.process.wait();
    }
}

fn connect(socket: &Path) -> Client {
    let begin = Instant::now();
    loop {
        match Client::at(Address::Socket(socket.to_owned())) {
            Ok(client) => return client,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(60), "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn submission(hold: bool, array: Option<u32>) -> Submission {
    let words = ["sh", "-c", "while sleep 0.1; do date; done"].map(str::to_owned).to_vec();
    let mut job = JobRequest::new(JobCommand::Program(words), "/");
    job.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    job.resources.gpus = 0;
    job.schedule.hold = hold;
    Submission { job, array: array.map(|jobs| (0..jobs).collect()), parameters: Vec::new() }
}

/// Submits, lists and cancels a job over and over. The times of each.
fn measure(socket: &Path) -> [Vec<Duration>; 3] {
    let mut client = connect(socket);
    let mut times: [Vec<Duration>; 3] = Default::default();
    let begin = Instant::now();
    while begin.elapsed() < MEASURED || (times[0].len() < ROUNDS && begin.elapsed() < MAX_MEASURED) {
        let mut job = None;
        let own = QueueQuery { user: Some(UserId(QUIET)), limit: Some(100), ..QueueQuery::default() };
        times[0].push(timed(|| job = client.submit(&submission(true, None)).unwrap().jobs.first().copied()));
        times[1].push(timed(|| assert!(!client.queue(&own).unwrap().jobs.is_empty())));
        times[2].push(timed(|| assert_eq!(client.act(&job.unwrap().0.to_string(), &JobAction::Cancel).unwrap().done.len(), 1)));
        thread::sleep(Duration::from_millis(5));
    }
    times.each_mut().iter_mut().for_each(|times| times.sort_unstable());
    times
}

/// Clients of the busy user, until they are stopped.
struct BusyClients {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<usize>>,
}

impl BusyClients {
    fn start(socket: &Path, jobs: Jobs, loads: &[Load]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |load: fn(&mut Client, &Jobs)| {
            let (stop, socket) = (Arc::clone(&stop), socket.to_owned());
            thread_as(BUSY, move || {
                let (mut client, mut calls) = (connect(&socket), 0);
                while !stop.load(Ordering::Relaxed) {
                    load(&mut client, &jobs);
                    calls += 1;
                }
                calls
            })
        };
        let clients = loads.iter().flat_map(|(_, clients, load)| (0..*clients).map(|_| client(*load))).collect();
        thread::sleep(Duration::from_secs(1));
        Self { stop, clients }
    }

    fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().map(|client| client.join().unwrap()).sum()
    }
}

fn main() {
    if let Err(missing) = root() {
        return println!("fairness: {missing}");
    }
    let folder = tempfile::tempdir().unwrap();
    let manager = Manager::start(folder.path());
    let socket = manager.socket.clone();
    let path = socket.clone();
    connect(&socket).status().unwrap();
    let jobs = thread_as(BUSY, move || {
        let mut client = connect(&path);
        let runs = client.submit(&submission(false, None)).unwrap().jobs[0];
        let (size, mut array) = (std::env::var("JOBS").map_or(ARRAY, |jobs| jobs.parse().unwrap()), None);
        let took = timed(|| array = client.submit(&submission(true, Some(size))).unwrap().jobs.first().copied());
        println!("\nan array of {size} jobs is accepted in {took:.1?}");
        Jobs { array: array.unwrap(), runs }
    });
    let jobs = jobs.join().unwrap();
    let quiet = percentiles("nothing", 0, &socket, None);
    let only = std::env::var("LOAD").ok();
    for load in LOADS.iter().filter(|load| only.as_ref().is_none_or(|only| load.0.contains(only.as_str()))) {
        under(&socket, jobs, load.0, std::slice::from_ref(load), quiet);
    }
    let worst = under(&socket, jobs, "all of these", &LOADS, quiet);
    println!("the limit on a quiet machine is {LONGEST:?}; the worst under all loads is {worst:.1?}");
}

/// Measures under some loads. The worst 99th percentile.
fn under(socket: &Path, jobs: Jobs, name: &str, loads: &[Load], quiet: [Duration; 3]) -> Duration {
    let crowd = BusyClients::start(socket, jobs, loads);
    let clients = crowd.clients.len();
    let worst = percentiles(name, clients, socket, Some(quiet));
    let begin = Instant::now();
    let calls = crowd.stop();
    println!("{:<26} {calls} calls of the busy user; the last ended {:.1?} later", "", begin.elapsed());
    worst.into_iter().max().unwrap_or_default()
}

/// Prints the percentiles of each call, with the ratio to those without load. The 99th percentiles.
fn percentiles(name: &str, clients: usize, socket: &Path, quiet: Option<[Duration; 3]>) -> [Duration; 3] {
    let socket = socket.to_owned();
    let times = thread_as(QUIET, move || measure(&socket)).join().unwrap();
    let mut worst = [Duration::ZERO; 3];
    for (call, times) in times.iter().enumerate() {
        let at = |share: f64| times[((times.len() - 1) as f64 * share).ceil() as usize];
        worst[call] = at(0.99);
        let ratio = quiet.map(|quiet| format!("{:.1} x quiet", at(0.99).as_secs_f64() / quiet[call].as_secs_f64()));
        println!(
            "{:<26} {clients:>3} clients  {:<7} p50 {:>10}  p99 {:>10}  of {:>5}  {}",
            name,
            CALLS[call],
            format!("{:.1?}", at(0.5)),
            format!("{:.1?}", at(0.99)),
            times.len(),
            ratio.unwrap_or_default()
        );
    }
    worst
}

fn timed(call: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}
