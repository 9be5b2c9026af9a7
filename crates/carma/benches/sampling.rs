//! The cost of sampling GPUs: through the driver's library, against programs started for each sample.
//!
//! The reference is the published prototype: each second it starts `nvidia-smi` for memory and power, `nvidia-smi` again for processes and `dcgmi`
//! for one line of counters. The GPUs and these programs are emulated; the time of a real driver comes on top for both.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use carma_bench::{Calls, Case, Suite, processor_time, thread_times};
use carma_core::MiB;
use carma_emu::state::{ContextKind, ContextRecord, started};
use carma_emu::{Machine, VARIABLE};
use carma_gpu::{DEADLINE, DeviceUuid, Driver, Monitor};
use carma_manager::api::Submission;
use carma_manager::client::{Address, Client};
use carma_manager::places::Places;
use carma_manager::request::{JobCommand, JobRequest};

const GPUS: u32 = 8;
const PROCESSES_A_GPU: u32 = 3;
/// Duration of the measurements.
const WATCHED: Duration = Duration::from_secs(30);
const WATCHED_IN_A_MANAGER: Duration = Duration::from_secs(180);

struct Server {
    machine: Machine,
    processes: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Server {
    fn new() -> Self {
        Self::with(GPUS * PROCESSES_A_GPU)
    }

    /// A server with so many processes.
    fn with(count: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_carma"));
        let servers = format!("{GPUS}xA100-40GB").parse().unwrap();
        let machine = Machine::create(&folder.path().join("emu"), &servers, 1.0, Some(program)).unwrap();
        let mut processes = Vec::new();
        for place in 0..count {
            let process = Command::new("sleep").arg("100000").spawn().unwrap();
            let counters = [0.3, 0.2, 0.1, 0.4];
            let context = ContextRecord {
                pid: process.id(),
                gpu: place % GPUS,
                bytes: 3 << 30,
                busy: 1,
                counters,
                watts: 60.0,
                ..ContextRecord::new(ContextKind::Compute)
            };
            machine.with(|state| state.attach(context, started(process.id()).unwrap())).unwrap().unwrap();
            processes.push(process);
        }
        Self { machine, processes, _folder: folder }
    }

    fn uuids(&self) -> Vec<DeviceUuid> {
        self.machine.with(|state| state.gpus.iter().map(|gpu| gpu.uuid.get().parse().unwrap()).collect()).unwrap()
    }

    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.machine.programs().join(name));
        command.args(arguments).envs(self.machine.environment());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without their GPUs, jobs end.
        let _ = Machine::remove(self.machine.folder());
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn main() {
    let mut suite = Suite::with_calls("watching 8 GPUs with 24 processes", Calls { timed: 100, counted: 0 });
    let reference = "three programs a look";
    suite.run(&Case {
        name: reference,
        units: 1,
        reference,
        setup: &Server::new,
        prepare: &|_| (),
        call: &|server: &mut Server| {
            for (name, arguments) in [
                ("nvidia-smi", &["--query-gpu=uuid,memory.used,utilization.gpu,power.draw", "--format=csv,noheader,nounits"][..]),
                ("nvidia-smi", &["--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"][..]),
                // The shortest interval, so that its pause does not count as work.
                ("dcgmi", &["dmon", "-e", "1001,1002,1003,1005", "-c", "1", "-d", "100"][..]),
            ] {
                assert!(server.program(name, arguments).output().unwrap().status.success());
            }
        },
    });
    suite.run(&Case {
        name: "one look through the library",
        units: 1,
        reference,
        setup: &|| {
            let server = Server::new();
            let driver = Driver::open(Some(&server.machine.library()), DEADLINE).unwrap();
            (server.uuids(), driver, Monitor::default(), server)
        },
        prepare: &|_| (),
        call: &|(uuids, driver, monitor, _)| {
            let (observations, _) = monitor.sample(driver, uuids);
            assert!(observations.iter().all(|observation| observation.reading.is_ok()));
        },
    });
    share_of_a_core();
    in_a_manager();
}

/// Threads of a manager that are in the driver: the emulated one checks for events in a loop. The `gpu` threads make its other calls.
const IN_THE_DRIVER: [&str; 2] = ["gpu", "gpu events"];
/// Predictions of starts and ends. They take their own share, which depends on the queue.
const PREDICTIONS: &str = "predictions";

/// The load of a manager whose jobs are the processes, thread by thread.
fn in_a_manager() {
    let state = tempfile::tempdir().unwrap();
    let mut server = Server::with(0);
    let program = Path::new(env!("CARGO_BIN_EXE_carma"));
    let mut command = Command::new(program);
    command.arg("up").arg("--state").arg(state.path()).env(VARIABLE, server.machine.folder());
    server.processes.push(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let manager = server.processes[0].id();
    let connect = || Client::at(Address::Socket(Places::at(state.path()).socket)).ok();
    let mut client = until(connect);
    let train = format!("{} emu train --workload dlrm_criteo_bs32768 --memory 9000 --seconds 100000 &", program.display());
    let train = format!("{} wait", train.repeat(PROCESSES_A_GPU as usize));
    let mut job = JobRequest::new(JobCommand::Program(["sh", "-c", &train].map(str::to_owned).to_vec()), state.path());
    job.environment.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    job.resources.memory = Some(MiB(33_000));
    let array = Some((0..GPUS).collect());
    client.submit(&Submission { job, array, parameters: Vec::new() }).unwrap();
    until(|| (client.status().unwrap().jobs.running == u64::from(GPUS)).then_some(()));
    std::thread::sleep(Duration::from_secs(10));
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let (before, began) = (thread_times(manager), Instant::now());
    std::thread::sleep(WATCHED_IN_A_MANAGER);
    let (after, took) = (thread_times(manager), began.elapsed());
    println!("\nin a manager with {GPUS} jobs of {PROCESSES_A_GPU} processes, in percent of a core; load {}", load.trim());
    let (mut own, mut driver) = (0.0, 0.0);
    for (name, time) in after {
        let share = time.saturating_sub(before.get(&name).copied().unwrap_or_default()).as_secs_f64() / took.as_secs_f64() * 100.0;
        println!("  {name:<24} {share:.3} %");
        match name.as_str() {
            PREDICTIONS => {}
            name if IN_THE_DRIVER.contains(&name) => driver += share,
            _ => own += share,
        }
    }
    println!("  together {own:.3} % without predictions and the driver's threads, which took {driver:.3} %");
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "it did not come to that");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The load of `carma gpus --watch`, with its stream of counters.
fn share_of_a_core() {
    let server = Server::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
    let mut watch = command.args(["gpus", "--watch", "--json"]).envs(server.machine.environment()).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    let family = descendants(watch.id());
    let times = || family.iter().map(|pid| processor_time(*pid)).collect::<Vec<_>>();
    let (before, began) = (times(), Instant::now());
    std::thread::sleep(WATCHED);
    let after = times();
    let share = |place: usize| after[place].saturating_sub(before[place]).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    println!("\nat one look a second, in percent of a core:");
    for (place, pid) in family.iter().enumerate() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        println!("  {:<24} {:.3} %", name.trim(), share(place));
    }
    assert_eq!(family, descendants(watch.id()), "a process was started for a look");
    let _ = watch.kill();
    let _ = watch.wait();
}

/// A process and its descendants.
fn descendants(pid: u32) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |process: &u32| fields(*process).get(1).and_then(|field| field.parse::<u32>().ok());
    let children: Vec<u32> = processes.filter(|process| parent(process) == Some(pid)).collect();
    std::iter::once(pid).chain(children.into_iter().flat_map(descendants)).collect()
}

/// The fields of a process in /proc, from its state on.
fn fields(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().map(str::to_owned).collect())
}
