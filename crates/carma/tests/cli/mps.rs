//! MPS on emulated GPUs: the control program, its daemon and its servers as processes.

mod users;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{MiB, Verdict};
use carma_emu::Machine;
use carma_emu::cuda::{CudaError, MpsConnection, MpsSettings, Program, Rank, visible};
use carma_gpu::mps::{ClientLimits, Health, MpsControl, MpsError, MpsFailure, ServerDied, ServerState, Watch};
use carma_gpu::{ComputeAccess, ComputeModeChange, DEADLINE, DeviceUuid, Driver, process_started};
use carma_sim::Catalogue;
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use tempfile::TempDir;

/// More than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A machine with two GPUs and the control of the second's MPS.
struct Bench {
    scratch: TempDir,
    machine: Machine,
    gpu: DeviceUuid,
    control: MpsControl,
}

impl Bench {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // Accessible to all users, as a machine's usual folder.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = scratch.path().join("machine");
        let machine =
            Machine::create(&folder, &"2xA100-40GB".parse().unwrap(), 20.0, Some(Path::new(env!("CARGO_BIN_EXE_carma")))).unwrap();
        let gpu: DeviceUuid = machine.with(|state| state.gpus[1].uuid.get().to_owned()).unwrap().parse().unwrap();
        let control = MpsControl::new(gpu.clone(), scratch.path().join("pipes"), scratch.path().join("logs"))
            .with_program(machine.programs().join("nvidia-cuda-mps-control"))
            .with_deadline(TIMEOUT);
        Self { scratch, machine, gpu, control }
    }

    fn started() -> Self {
        let bench = Self::new();
        bench.control.start(ClientLimits::default()).unwrap();
        bench
    }

    fn daemon(&self) -> u32 {
        daemon(self.control.pipes()).unwrap()
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.scratch.path().join("logs").join(name)).unwrap()
    }

    /// This process as a client with these limits, as its environment would have them.
    fn connect(&self, limits: ClientLimits) -> Result<Option<MpsConnection>, CudaError> {
        let variables = limits.environment(&self.control);
        let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_str().unwrap().to_owned());
        MpsConnection::open(&MpsSettings {
            pipes: PathBuf::from(value("CUDA_MPS_PIPE_DIRECTORY").unwrap()),
            threads: value("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
            memory: value("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"),
            timeout: TIMEOUT,
        })
    }

    /// A training program of this process on the GPU.
    fn train(&self, mps: Option<MpsConnection>) -> Result<Program<'_>, CudaError> {
        let catalogue = Catalogue::shipped();
        let workload = catalogue.get(catalogue.find("resnet50_imagenet_bs64").unwrap());
        let ranks = [Rank { profile: &workload.ranks[0], workload: Some(workload) }];
        let places = self.machine.with(|state| visible(state, Some(self.gpu.as_str()), Some("PCI_BUS_ID"))).unwrap();
        Program::attach(&self.machine, &places, &ranks, mps)
    }

    fn client(&self) -> Program<'_> {
        self.train(self.connect(ClientLimits::default()).unwrap()).unwrap()
    }

    fn server(&self) -> u32 {
        match self.control.health().unwrap() {
            Health::Serving(server) => server.pid,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.control.stop(Duration::ZERO);
        let _ = Machine::remove(self.machine.folder());
    }
}

/// The daemon with these pipes: the holder of their lock.
pub(crate) fn daemon(pipes: &Path) -> Option<u32> {
    let holder = fcntl_getlk(fs::File::open(pipes.join("control_lock")).ok()?, &Flock::from(FlockType::WriteLock)).unwrap()?;
    holder.pid.map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn until(what: &str, holds: impl FnMut() -> bool) {
    let (began, mut holds) = (Instant::now(), holds);
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_daemon_serves_clients_and_leaves_nothing_behind() {
    let bench = Bench::new();
    assert_eq!(bench.control.health().unwrap(), Health::NotRunning);
    assert!(bench.connect(ClientLimits::default()).unwrap().is_none(), "without a daemon programs run by themselves");
    bench.control.start(ClientLimits { active_threads: Some(50), memory: Some(MiB(4096)) }).unwrap();
    assert!(matches!(bench.control.start(ClientLimits::default()), Err(MpsError::AlreadyRunning(_))));
    assert_eq!(bench.control.health().unwrap(), Health::Idle);
    let daemon = bench.daemon();
    let client = bench.client();
    let Health::Serving(server) = bench.control.health().unwrap() else { panic!("a server serves") };
    let me = std::process::id();
    assert_eq!((server.user, server.clients), (Some(rustix::process::getuid().as_raw()), vec![me]));
    // The server and its client are on the daemon's GPU, and no process on the other.
    let on = |gpu: u32| bench.machine.with(|state| state.contexts().iter().filter(|context| context.gpu == gpu).count()).unwrap();
    assert_eq!((on(0), on(1)), (0, 2));
    let table = bench.control.command("ps").unwrap();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..4], [&me.to_string(), "0", &server.pid.to_string(), &bench.gpu.as_str()[..22]]);
    drop(client);
    until("it leaves", || bench.control.clients(server.pid).unwrap().is_empty());
    bench.control.stop(Duration::ZERO).unwrap();
    assert_eq!([daemon, server.pid].map(process_started), [None; 2]);
    assert_eq!(bench.control.health().unwrap(), Health::NotRunning);
    assert_eq!((on(0), on(1)), (0, 0));
    let log = bench.log("control.log");
    for words in [
        "] Starting control daemon using socket ",
        &format!("Control {daemon}] NEW CLIENT {me} from user "),
        &format!("] Starting new server {} for user ", server.pid),
        &format!("] NEW SERVER {}: Ready", server.pid),
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(bench.log("server.log").contains("] Creating server context on device 0 (NVIDIA A100"));
}

#[test]
fn mps_limits_hold() {
    let bench = Bench::new();
    bench.control.start(ClientLimits { active_threads: Some(50), memory: Some(MiB(4096)) }).unwrap();
    assert_eq!(bench.control.command("get_default_active_thread_percentage").unwrap(), "50.0\n");
    assert_eq!(bench.control.command("get_default_device_pinned_mem_limit 0").unwrap(), "4G\n");
    let mine = ClientLimits { active_threads: Some(25), memory: Some(MiB(2048)) };
    let client = bench.train(bench.connect(mine).unwrap()).unwrap();
    client.hold(0, 2 << 30).unwrap();
    assert!(matches!(client.hold(0, (2 << 30) + 1), Err(CudaError::OutOfMemory { .. })));
    let threads = || bench.machine.with(|state| state.contexts().iter().map(|context| context.threads).min()).unwrap();
    assert_eq!(threads(), Some(25));
    drop(client);
    // Without a request, the daemon's limits apply.
    let client = bench.client();
    client.hold(0, 4 << 30).unwrap();
    assert!(matches!(client.hold(0, (4 << 30) + 1), Err(CudaError::OutOfMemory { .. })));
    assert_eq!(threads(), Some(50));
}

#[test]
fn a_killed_server_is_noticed_and_its_clients_fail() {
    let bench = Bench::started();
    let client = bench.client();
    let mut watch = Watch::default();
    assert_eq!(watch.observe(&bench.control.health().unwrap()), None);
    assert_eq!(watch.check(), None);
    let server = bench.server();
    signal(server, Signal::KILL);
    let mut died = None;
    until("the death is noticed", || {
        died = watch.check();
        died.is_some()
    });
    assert_eq!(died, Some(ServerDied { pid: server, clients: vec![std::process::id()] }));
    assert_eq!(watch.observe(&bench.control.health().unwrap()), None, "it is reported once");
    let mut error = None;
    until("the client fails", || {
        error = client.work().err();
        error.is_some()
    });
    let error = error.unwrap();
    assert!(matches!(error, CudaError::MpsServerGone), "{error}");
    assert_eq!(MpsFailure::in_log(&error.to_string()), Some(MpsFailure::ServerGone));
    drop(client);
    // The next client gets a new server.
    until("the daemon has noticed too", || bench.control.health().unwrap() == Health::Idle);
    let _client = bench.client();
    assert_ne!(bench.server(), server);
    assert!(bench.log("control.log").contains(&format!("] Server {server} exited: signal: 9 (SIGKILL)")));
}

#[test]
fn a_terminated_client_fails_alone() {
    let bench = Bench::started();
    let client = bench.client();
    client.run(true).unwrap();
    let server = bench.server();
    let me = std::process::id();
    bench.control.command(&format!("terminate_client {server} {me}")).unwrap();
    let error = client.work().unwrap_err();
    assert!(matches!(error, CudaError::MpsTerminated), "{error}");
    assert_eq!(MpsFailure::in_log(&error.to_string()), Some(MpsFailure::Terminated));
    assert!(matches!(bench.control.health().unwrap(), Health::Serving(_)), "the server serves on");
    assert!(matches!(bench.control.command(&format!("terminate_client {server} 1")), Err(MpsError::Refused { .. })));
}

#[test]
fn a_server_with_a_failed_client_is_faulty_until_that_ends() {
    let bench = Bench::started();
    let client = bench.client();
    let server = bench.server();
    let uncorrectable = 214;
    let fail = |state: &mut carma_emu::state::State<'_>| state.contexts_mut().iter_mut().for_each(|context| context.fault = uncorrectable);
    bench.machine.with(fail).unwrap();
    let health = bench.control.health().unwrap();
    assert!(matches!(&health, Health::Faulty(faulty) if faulty.pid == server), "{health:?}");
    let died = ServerDied { pid: server, clients: vec![std::process::id()] };
    assert_eq!(Watch::default().observe(&health), Some(died));
    let refused = bench.connect(ClientLimits::default());
    assert!(matches!(refused, Err(CudaError::MpsNotReady)), "{refused:?}");
    drop(client);
    assert_eq!(bench.server(), server);
}

#[test]
fn a_daemon_that_hangs_costs_one_deadline_and_is_stopped() {
    let bench = Bench::started();
    let client = bench.client();
    let (daemon, server) = (bench.daemon(), bench.server());
    signal(daemon, Signal::STOP);
    let impatient = bench.control.clone().with_deadline(Duration::from_millis(200));
    let began = Instant::now();
    assert_eq!(impatient.health().unwrap(), Health::Unresponsive);
    let settings =
        MpsSettings { pipes: bench.control.pipes().to_owned(), threads: None, memory: None, timeout: Duration::from_millis(200) };
    assert!(matches!(MpsConnection::open(&settings), Err(CudaError::MpsUnreachable)));
    impatient.stop(Duration::ZERO).unwrap();
    assert!(began.elapsed() < TIMEOUT);
    assert_eq!([daemon, server].map(process_started), [None; 2]);
    drop(client);
}

#[test]
fn stopping_waits_for_clients_and_then_does_not() {
    let bench = Bench::started();
    let client = bench.client();
    let (daemon, server) = (bench.daemon(), bench.server());
    bench.control.stop(Duration::from_secs(1)).unwrap();
    assert_eq!([daemon, server].map(process_started), [None; 2]);
    assert!(matches!(client.work(), Err(CudaError::MpsServerGone)));
}

#[test]
fn the_program_prints_like_that_of_nvidia() {
    let bench = Bench::new();
    let run = |arguments: &[&str], input: &str| {
        let mut command = Command::new("nvidia-cuda-mps-control");
        // Found on the path, as a user's shell would, on the machine's own daemon.
        command
            .args(arguments)
            .envs(bench.machine.environment())
            .env_remove("CUDA_MPS_PIPE_DIRECTORY")
            .env_remove("CUDA_MPS_LOG_DIRECTORY");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Without a daemon it does not wait for input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let message = |code: i32, out: &str, err: &str| (code, out.to_owned(), err.to_owned());
    assert_eq!(run(&[], "get_server_list\n"), message(1, "", "Cannot find MPS control daemon process\n"));
    assert_eq!(run(&["-d"], ""), message(0, "", ""));
    assert_eq!(run(&["-d"], ""), message(1, "An instance of this daemon is already running\n", ""));
    assert_eq!(run(&[], "get_server_list\n"), message(0, "", ""));
    let user = rustix::process::getuid().as_raw();
    assert_eq!(run(&[], &format!("start_server -uid {user}\n")), message(0, "", ""));
    let (_, server, _) = run(&[], "get_server_list\n");
    let server = server.trim();
    until("the server serves", || run(&[], &format!("get_server_status {server}\n")).1 == "ACTIVE\n");
    let shown =
        Command::new(bench.machine.programs().join("nvidia-smi")).args(["--query-compute-apps=name", "--format=csv,noheader"]).output();
    assert_eq!(String::from_utf8(shown.unwrap().stdout).unwrap(), "nvidia-cuda-mps-server\n".repeat(2));
    let several = format!("get_server_status {server}\nset_active_thread_percentage {server} 30\nget_active_thread_percentage {server}\n");
    assert_eq!(run(&[], &several), message(0, "ACTIVE\n30.0\n30.0\n", ""));
    // It reports errors like answers.
    assert_eq!(run(&[], "get_client_list 1\n"), message(0, "Server 1 not found\n", ""));
    assert_eq!(run(&[], "make_coffee\n"), message(0, "Unknown command \"make_coffee\"\n", ""));
    assert_eq!(run(&[], &format!("shutdown_server {server}\n")), message(0, "", ""));
    until("the server ends", || run(&[], "get_server_list\n").1.is_empty());
    assert_eq!(run(&[], "quit\n"), message(0, "", ""));
    assert_eq!(run(&[], "get_server_list\n"), message(1, "", "Cannot find MPS control daemon process\n"));
    // The removal of a machine ends its daemon.
    assert_eq!(run(&["-d"], ""), message(0, "", ""));
    let daemon = daemon(&bench.machine.folder().join("nvidia-mps")).unwrap();
    Machine::remove(bench.machine.folder()).unwrap();
    until("the daemon ends", || process_started(daemon).is_none());
    assert!(!bench.machine.folder().exists());
}

#[test]
fn training_processes_share_a_server_and_die_with_it() {
    let bench = Bench::started();
    let train = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.args(["emu", "train", "--workload", "resnet50_imagenet_bs64", "--seconds", "12h", "--seed", "1"]);
        command.envs(bench.machine.environment()).envs(ClientLimits::default().environment(&bench.control));
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [train(), train()];
    let mut clients = Vec::new();
    until("both are clients", || {
        if let Ok(Health::Serving(server)) = bench.control.health() {
            clients = server.clients;
        }
        clients.len() == 2
    });
    assert!(children.iter().all(|child| clients.contains(&child.id())));
    signal(bench.server(), Signal::KILL);
    for child in children {
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert_eq!(MpsFailure::in_log(&words).and_then(MpsFailure::verdict), Some(Verdict::MpsServerDied), "{words}");
    }
}

#[test]
fn a_gpu_kept_for_mps_takes_clients_only_and_is_given_back() {
    let bench = Bench::started();
    let driver = Driver::open(Some(&bench.machine.library()), DEADLINE).unwrap();
    let change = ComputeModeChange::plan(&driver, &bench.gpu, ComputeAccess::ExclusiveProcess).unwrap();
    change.make(&driver).unwrap();
    assert_eq!(driver.compute_mode(&bench.gpu).unwrap(), ComputeAccess::ExclusiveProcess);
    bench.control.start_server(rustix::process::getuid().as_raw()).unwrap();
    until(
        "the server has the GPU",
        || matches!(bench.control.health(), Ok(Health::Serving(server)) if server.state == ServerState::Active),
    );
    assert!(matches!(bench.train(None), Err(CudaError::Unavailable)));
    drop(bench.client());
    // A manager that was restarted has only what it wrote down.
    let kept = serde_json::to_string(&change).unwrap();
    let change: ComputeModeChange = serde_json::from_str(&kept).unwrap();
    change.restore(&driver).unwrap();
    assert_eq!(driver.compute_mode(&bench.gpu).unwrap(), ComputeAccess::Shared);
    drop(bench.train(None).unwrap());
    // A later change by another process stays.
    driver.set_compute_mode(&bench.gpu, ComputeAccess::Prohibited).unwrap();
    change.restore(&driver).unwrap();
    assert_eq!(driver.compute_mode(&bench.gpu).unwrap(), ComputeAccess::Prohibited);
}
