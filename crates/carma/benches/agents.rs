//! What a thousand agents cost their manager: processor time, memory, and the time from an order to its end. The agents are simulated, many to a
//! process; connections, handshakes and messages are real. Variables: AGENTS (1000), JOBS (500).

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on stops")]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use carma_bench::processor_time;
use carma_core::{JobId, MiB};
use carma_emu::{Machine, VARIABLE};
use carma_gpu::{DEADLINE, Driver};
use carma_manager::agent::{AgentSetup, ManagerAddress, simulate};
use carma_manager::api::Submission;
use carma_manager::client::{Address, Client};
use carma_manager::engine::World;
use carma_manager::request::{JobCommand, JobRequest};

/// Agents of one process: each needs two open files.
const EACH: usize = 250;
/// How long the manager is watched without jobs.
const WATCHED: Duration = Duration::from_secs(30);
/// Goals, on a machine with nothing else to do.
const SHARE: f64 = 0.5;
const MEMORY: f64 = 500.0;
const LATENCY: u64 = 250;

fn main() {
    let folder = env::var_os("CARMA_SIMULATED_AGENTS");
    let number = |name: &str, otherwise: usize| env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap());
    if let Some(folder) = folder {
        return agents(Path::new(&folder), number("CARMA_AGENTS_HERE", 1), &env::var("CARMA_AGENTS_NODE").unwrap());
    }
    measure(number("AGENTS", 1000), number("JOBS", 500));
}

fn agents(folder: &Path, count: usize, node: &str) {
    let machine = Machine::open(&folder.join("gpus")).unwrap();
    let world = World {
        description: "emulated GPUs".to_owned(),
        speed: machine.clock().unwrap().1,
        environment: BTreeMap::from([(VARIABLE.to_owned(), machine.folder().display().to_string())]),
        search_paths: machine.search_paths().map(|(name, folder)| (name.to_owned(), folder)).into(),
        profiling: carma_gpu::profiling::Options { dcgmi: machine.programs().join("dcgmi"), ..Default::default() },
        mps_folder: machine.folder().join("mps"),
        mps_program: machine.programs().join(carma_gpu::mps::PROGRAM),
    };
    let state = folder.join("state");
    let setup = AgentSetup {
        manager: ManagerAddress::File(state.join("agents.json")),
        secret: state.join("agents.secret"),
        pilot: None,
        batch_job: None,
        node: node.to_owned(),
        folder: folder.join(node),
        checkpoints: state.join("attempts"),
        left: None,
        drain: Duration::ZERO,
        driver: Some(Arc::new(Driver::open(Some(&machine.library()), DEADLINE).unwrap())),
        world,
        program: program().to_owned(),
        launch_program: program().to_owned(),
    };
    simulate(&setup, count).unwrap();
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_carma"))
}

/// A process that ends with the benchmark.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(count: usize, jobs: usize) {
    let folder = tempfile::tempdir().unwrap();
    let _machine = Machine::create(&folder.path().join("gpus"), &"4xA100-40GB".parse().unwrap(), 1.0, Some(program())).unwrap();
    let state = folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("carma.toml"), "[manager.agents]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let mut manager = Command::new(program());
    manager.args(["up", "--no-local", "--state"]).arg(&state).env_remove(VARIABLE).stdout(Stdio::null());
    let manager = Running(manager.stderr(File::create(folder.path().join("log")).unwrap()).spawn().unwrap());
    let mut client = until(|| Client::at(Address::Socket(state.join("carma.sock"))).ok().filter(|_| state.join("agents.json").exists()));
    let groups = (0..count).step_by(EACH).map(|first| {
        let mut agents = Command::new(env::current_exe().unwrap());
        agents.env("CARMA_SIMULATED_AGENTS", folder.path()).env("CARMA_AGENTS_HERE", EACH.min(count - first).to_string());
        Running(agents.env("CARMA_AGENTS_NODE", format!("node-{first}")).spawn().unwrap())
    });
    let _groups: Vec<Running> = groups.collect();
    until(|| client.servers().ok().filter(|servers| servers.len() == count));
    println!("{count} agents with 4 GPUs each, a sample a second");
    let share = share_over(&manager, || thread::sleep(WATCHED));
    println!(
        "without jobs: {:.0} % of a core (goal: {:.0} %), {:.0} MiB (goal: {MEMORY:.0})",
        share * 100.0,
        SHARE * 100.0,
        memory(&manager)
    );
    let mut done = Vec::new();
    let share = share_over(&manager, || done = run_jobs(&mut client, jobs));
    let latency = |percent: usize| done[(done.len() * percent / 100).min(done.len() - 1)];
    println!(
        "with {jobs} jobs: {:.0} % of a core, {:.0} MiB; from the launch to the end of a job p50 {} ms, p99 {} ms (goal: {LATENCY})",
        share * 100.0,
        memory(&manager),
        latency(50),
        latency(99)
    );
}

/// The share of a core that the manager uses meanwhile.
fn share_over(manager: &Running, act: impl FnOnce()) -> f64 {
    let (before, since) = (processor_time(manager.0.id()), Instant::now());
    act();
    processor_time(manager.0.id()).saturating_sub(before).as_secs_f64() / since.elapsed().as_secs_f64()
}

/// Resident memory, in MiB.
fn memory(manager: &Running) -> f64 {
    let status = fs::read_to_string(format!("/proc/{}/status", manager.0.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    resident.unwrap() / 1024.0
}

/// Runs jobs, and returns the sorted times in milliseconds from the launch of each to its end, which its agent reports at once.
fn run_jobs(client: &mut Client, count: usize) -> Vec<u64> {
    let submit = |client: &mut Client| {
        let mut job = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/tmp");
        job.resources.memory = Some(MiB(4096));
        thread::sleep(Duration::from_millis(20));
        client.submit(&Submission::from(job)).unwrap().jobs[0]
    };
    let jobs: Vec<JobId> = (0..count).map(|_| submit(client)).collect();
    until(|| client.status().ok().filter(|status| status.jobs.waiting + status.jobs.running == 0));
    let mut times: Vec<u64> = jobs
        .iter()
        .map(|job| {
            let detail = client.job(&job.0.to_string()).unwrap();
            let at = |kind: &str| detail.events.iter().find(|stored| stored.event.event.kind() == kind).unwrap().event.at.0;
            at("ended") - at("launched")
        })
        .collect();
    times.sort_unstable();
    times
}

fn until<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(300), "waited in vain");
        thread::sleep(Duration::from_millis(100));
    }
}
