//! NVIDIA's MPS control daemon: driven by `carma mps` and by the manager, and compared with the stand-in text by text.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use carma_core::{Limits, MiB, Outcome};
use carma_emu::Machine;
use carma_gpu::mps::{ClientLimits, Health, MpsControl, MpsError, PROGRAM, knows_version_3};
use carma_gpu::process_started;
use carma_testing::{Missing, as_nobody, need};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::manager::lab::Lab;
use crate::mps::daemon;

fn program() -> Result<PathBuf, Missing> {
    Ok(carma_testing::nvidia()?.join("root/usr/bin").join(PROGRAM))
}

/// A folder that all users can enter.
fn shared_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A machine whose control program is NVIDIA's.
fn machine(folder: &Path, program: &Path) -> Machine {
    let machine = Machine::create(folder, &"2xA100-40GB".parse().unwrap(), 1.0, Some(Path::new(env!("CARGO_BIN_EXE_carma")))).unwrap();
    install(&machine, program);
    machine
}

fn install(machine: &Machine, program: &Path) {
    let place = machine.programs().join(PROGRAM);
    let _ = fs::remove_file(&place);
    symlink(fs::canonicalize(program).unwrap(), place).unwrap();
}

/// The exit code, output and errors of a control program.
type Said = (Option<i32>, String, String);

/// Runs a control program on the daemon with these pipes.
fn say(mut control: Command, pipes: &Path, arguments: &[&str], input: &str) -> Said {
    control.args(arguments).env("CUDA_MPS_PIPE_DIRECTORY", pipes).env("CUDA_MPS_LOG_DIRECTORY", pipes.join("logs"));
    // Files, because a daemon may keep what it inherits.
    let [output, errors] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    control.stdin(Stdio::piped()).stdout(output.reopen().unwrap()).stderr(errors.reopen().unwrap());
    let mut child = control.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let code = child.wait().unwrap().code();
    (code, fs::read_to_string(output.path()).unwrap(), fs::read_to_string(errors.path()).unwrap())
}

/// All commands that we use, and wrong ones. The daemon has no server: none can start without a GPU.
const COMMANDS: &[&str] = &[
    "get_server_list",
    "get_client_list 1",
    "get_client_list",
    "get_client_list x",
    "get_default_active_thread_percentage",
    "set_default_active_thread_percentage 50",
    "set_default_active_thread_percentage 12.34",
    "set_default_active_thread_percentage 101",
    "set_default_active_thread_percentage 0",
    "set_default_active_thread_percentage x",
    "set_default_active_thread_percentage",
    "get_default_active_thread_percentage",
    "get_active_thread_percentage 1",
    "set_active_thread_percentage 1 20",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 4096M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 1536M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 1023M",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 1.5G",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 7",
    "get_default_device_pinned_mem_limit 0",
    "set_default_device_pinned_mem_limit 0 x",
    "get_default_device_pinned_mem_limit 0",
    "get_device_pinned_mem_limit 1 0",
    "set_device_pinned_mem_limit 1 0 1G",
    "start_server",
    "start_server -uid x",
    "shutdown_server 1",
    "shutdown_server 1 -f",
    "terminate_client 1 2",
    "ps",
    "ps -p 1",
    "bogus",
    "bogus 1 2",
    "",
    "  get_server_list  ",
    "get_server_list\nbogus\nget_default_active_thread_percentage",
];

#[test]
fn the_emulated_mps_daemon_gives_the_same_answers() {
    let theirs = need!(program());
    let scratch = shared_folder();
    let machine =
        Machine::create(&scratch.path().join("gpus"), &"1xA100-40GB".parse().unwrap(), 1.0, Some(Path::new(env!("CARGO_BIN_EXE_carma"))));
    let (machine, ours) = machine.map(|machine| (machine.environment(), machine.programs().join(PROGRAM))).unwrap();
    let pipes = ["theirs", "ours"].map(|name| scratch.path().join(name));
    for folder in &pipes {
        fs::create_dir(folder).unwrap();
    }
    let both = |arguments: &[&str], input: &str| {
        let command = |program: &Path| {
            let mut command = Command::new(program);
            command.envs(machine.clone());
            command
        };
        (say(command(&theirs), &pipes[0], arguments, input), say(command(&ours), &pipes[1], arguments, input))
    };
    let same = |arguments: &[&str], input: &str| {
        let (theirs, ours) = both(arguments, input);
        assert_eq!(theirs, ours, "NVIDIA's daemon and the stand-in on {arguments:?} {input:?}");
        theirs
    };
    assert_eq!(same(&[], "get_server_list\n").0, Some(1), "there is no daemon");
    assert_eq!(same(&["-d"], ""), (Some(0), String::new(), String::new()));
    assert_eq!(same(&["-d"], "").0, Some(1), "there is one already");
    for command in COMMANDS {
        assert_eq!(same(&[], &format!("{command}\n")).0, Some(0), "{command}");
    }
    // Later drivers document this command; that of Debian does not have it. The stand-in plays a later one.
    let (unknown, later) = both(&[], "get_server_status 1\n");
    assert_eq!((unknown.1.as_str(), later.1.as_str()), ("Unknown command \"get_server_status\"\n", "Server 1 not found\n"));
    // Other users may read and set limits, and end nothing.
    if as_nobody(&theirs).is_ok() && as_nobody(&ours).is_ok() {
        for command in ["get_server_list", "set_default_active_thread_percentage 20", "start_server -uid 0", "quit -t 0"] {
            let [theirs, ours] = [(&theirs, &pipes[0]), (&ours, &pipes[1])].map(|(program, pipes)| {
                let mut control = as_nobody(program).unwrap();
                control.envs(machine.clone());
                say(control, pipes, &[], &format!("{command}\n"))
            });
            assert_eq!(theirs, ours, "nobody's {command}");
        }
    }
    let files = |pipes: &Path| {
        let mut names: Vec<String> = fs::read_dir(pipes).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(files(&pipes[0]), ["control", "control_lock", "control_privileged", "log", "logs"]);
    // The stand-in needs neither the second socket nor the pipe of logs.
    assert_eq!(files(&pipes[1]), ["control", "control_lock", "logs"]);
    assert_eq!(same(&[], "quit\n"), (Some(0), String::new(), String::new()));
    assert_eq!(same(&[], "get_server_list\n").0, Some(1), "they are gone");
}

#[test]
fn nvidias_mps_daemon_is_started_limited_found_and_stopped() {
    let program = need!(program());
    let scratch = shared_folder();
    let control = |name: &str| {
        MpsControl::new("GPU-1".parse().unwrap(), scratch.path().join(name), scratch.path().join("logs")).with_program(&program)
    };
    assert!(!knows_version_3(&program), "driver 535 is older");
    let first = control("pipes");
    assert_eq!(first.health().unwrap(), Health::NotRunning);
    first.start(ClientLimits { active_threads: Some(50), memory: Some(MiB(1536)) }).unwrap();
    assert_eq!(first.command("get_default_active_thread_percentage").unwrap(), "50.0\n");
    assert_eq!(first.command("get_default_device_pinned_mem_limit 0").unwrap(), "1G\n");
    assert_eq!(first.health().unwrap(), Health::Idle);
    assert!(matches!(first.start(ClientLimits::default()), Err(MpsError::AlreadyRunning(_))));
    // What it refuses is an error, although its program exits with success.
    assert!(matches!(first.clients(1), Err(MpsError::Refused { .. })));
    assert!(matches!(first.command("make_coffee"), Err(MpsError::UnknownCommand { .. })));
    // Its server finds no GPU and ends; the daemon stays.
    first.start_server(0).unwrap();
    assert_eq!(first.health().unwrap(), Health::Idle);
    let found = daemon(first.pipes()).unwrap();
    first.stop(Duration::ZERO).unwrap();
    assert_eq!((process_started(found), first.health().unwrap()), (None, Health::NotRunning));
    // A daemon that hangs is found by its lock, and killed.
    let second = control("others").with_deadline(Duration::from_millis(500));
    second.start(ClientLimits::default()).unwrap();
    let hangs = daemon(second.pipes()).unwrap();
    kill_process(Pid::from_raw(hangs.try_into().unwrap()).unwrap(), Signal::STOP).unwrap();
    assert_eq!(second.health().unwrap(), Health::Unresponsive);
    second.stop(Duration::ZERO).unwrap();
    assert_eq!(process_started(hangs), None);
    // And its pipes can be used again.
    second.start(ClientLimits::default()).unwrap();
    second.stop(Duration::ZERO).unwrap();
}

#[test]
fn carma_mps_drives_nvidias_daemon() {
    let program = need!(program());
    let scratch = shared_folder();
    let machine = machine(&scratch.path().join("gpus"), &program);
    let run = |mut carma: Command, arguments: &[&str]| {
        let output = carma.arg("mps").args(arguments).envs(machine.environment()).env_remove("CUDA_VISIBLE_DEVICES").output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let own = || Command::new(env!("CARGO_BIN_EXE_carma"));
    let started = run(own(), &["start", "--gpu", "1", "--active-threads", "25", "--memory", "8GiB"]).1;
    assert!(started.starts_with("carma: MPS serves NVIDIA A100"), "{started}");
    assert!(run(own(), &["status"]).0.ends_with("MPS waits for its first client\n"));
    assert!(run(own(), &["start", "--gpu", "1", "--shared"]).1.ends_with("pipes already\n"));
    // A client finds the same daemon by what `env` prints.
    let environment = run(own(), &["env", "--gpu", "1"]).0;
    let asked = Command::new("sh")
        .args([
            "-c",
            &format!("{environment}printf 'get_default_active_thread_percentage\\nget_default_device_pinned_mem_limit 0\\n' | \"$0\""),
        ])
        .arg(&program)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(asked.stdout).unwrap(), "25.0\n8G\n");
    if let Ok(other) = as_nobody(Path::new(env!("CARGO_BIN_EXE_carma"))) {
        assert_eq!(run(other, &["stop", "--gpu", "1"]).1, "carma: permission denied: the daemon belongs to root\n");
    }
    let mode = || machine.with(|state| state.gpus[1].compute_mode).unwrap();
    assert_eq!(mode(), 3, "EXCLUSIVE_PROCESS");
    assert_eq!(run(own(), &["stop", "--gpu", "1"]), (String::new(), String::new()));
    assert!(run(own(), &["status"]).0.ends_with("no MPS\n"));
    assert_eq!(mode(), 0, "as it was");
}

#[test]
fn the_manager_drives_nvidias_daemon() {
    let program = need!(program());
    let mut lab = Lab::new("1xA100-40GB", 60.0, "");
    lab.stop();
    install(&lab.machine, &program);
    lab.configure("[manager.gpus]\nmps = [\"all\"]\n");
    lab.start();
    // The job asks the daemon itself, by what it was given.
    let ask = format!("echo get_server_list | {}; echo $?; env | grep MPS", program.display());
    let mut request = lab.shell(&ask);
    request.resources.memory = Some(MiB(4096));
    let job = lab.submit(request);
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "{:#?}", lab.job(job).events);
    let placement = &lab.job(job).attempts[0].placement;
    assert!(matches!(placement.devices[0].limits, Limits::Mps { .. }), "{placement:?}");
    let printed = lab.printed(job);
    assert!(printed.starts_with("0\n") && printed.contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0="), "{printed}");
    // The next manager shares it otherwise, and stops the daemon.
    let pipes = printed.lines().find_map(|line| line.strip_prefix("CUDA_MPS_PIPE_DIRECTORY=")).map(PathBuf::from).unwrap();
    let running = daemon(&pipes).unwrap();
    lab.stop();
    lab.configure("");
    lab.start();
    assert_eq!(process_started(running), None);
}
