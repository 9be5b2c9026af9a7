//! Attempts under supervision: real shims and jobs, and the effect of killing either.

mod aside;
mod copies;
mod kills;
mod launch_server;
mod limits;
mod many;
mod terminals;
mod users;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{AttemptId, JobId, Signal};
use carma_manager::attempt::{Ended, Exit, HostLimits, Order};
use carma_manager::launch::{LaunchError, Plan, Prepared};
use carma_manager::supervise::{AttemptFolder, AttemptState, LaunchServer, Supervised, find};
use tempfile::TempDir;

/// Long enough for the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_carma"))
}

fn launch_server() -> &'static LaunchServer {
    static SERVER: LazyLock<LaunchServer> = LazyLock::new(|| LaunchServer::new(program()));
    &SERVER
}

fn attempt(job: u64) -> AttemptId {
    AttemptId { job: JobId(job), number: 1 }
}

fn order(job: u64, command: &[&str]) -> Order {
    Order {
        attempt: attempt(job),
        command: command.iter().map(ToString::to_string).collect(),
        directory: "/".into(),
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]),
        umask: None,
        user: None,
        output: None,
        error: None,
        log_limit: 1 << 20,
        limits: HostLimits::default(),
        group: None,
        checkpoint_folder: None,
        checkpoint_signal: 15,
        afterwards: None,
        open_files: None,
        lease: None,
        terminal: None,
    }
}

fn shell(job: u64, script: &str) -> Order {
    order(job, &["sh", "-c", script])
}

fn launch(state: &TempDir, order: Order) -> AttemptFolder {
    launch_by(launch_server(), state, order)
}

fn launch_by(server: &LaunchServer, state: &TempDir, order: Order) -> AttemptFolder {
    let prepared = Prepared::new(AttemptFolder::of(state.path(), order.attempt)).unwrap();
    prepared.launch(Plan { order, script: None }, server).unwrap()
}

/// A log; empty if nothing was printed.
fn log(path: &Path) -> String {
    if path.exists() { fs::read_to_string(path).unwrap() } else { String::new() }
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain");
        thread::sleep(Duration::from_millis(2));
    }
}

fn ended(folder: &AttemptFolder) -> Ended {
    until(|| match find(folder).unwrap() {
        AttemptState::Ended(ended) => Some(ended),
        AttemptState::Lost | AttemptState::NeverStarted => panic!("lost"),
        AttemptState::Starting | AttemptState::Running(_) => None,
    })
}

fn running(folder: &AttemptFolder) -> Supervised {
    match find(folder).unwrap() {
        AttemptState::Running(supervised) => supervised,
        other => panic!("{other:?}"),
    }
}

fn exit_of(order: Order) -> Exit {
    ended(&launch(&tempfile::tempdir().unwrap(), order)).exit
}

/// Pids that jobs write to files.
fn pid_in(file: &Path) -> i32 {
    until(|| fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok())
}

fn is_there(pid: i32) -> bool {
    carma_gpu::process_started(pid.try_into().unwrap()).is_some()
}

#[test]
fn output_errors_and_exit_are_kept_and_copied() {
    let state = tempfile::tempdir().unwrap();
    let mine = state.path().join("mine.txt");
    fs::write(&mine, "before\n").unwrap();
    let job = Order { output: Some(mine.clone()), error: Some(mine.clone()), ..shell(1, "echo out; echo err >&2; exit 3") };
    let folder = launch(&state, job);
    let end = ended(&folder);
    assert_eq!(end.exit, Exit::Code(3));
    assert!(end.started <= end.ended);
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "out\n");
    assert_eq!(fs::read_to_string(folder.errors()).unwrap(), "err\n");
    let copied = fs::read_to_string(mine).unwrap();
    assert!(copied.starts_with("before\n") && copied.contains("out\n") && copied.contains("err\n"), "{copied}");
}

#[test]
fn a_job_inherits_only_its_order() {
    let state = tempfile::tempdir().unwrap();
    let mut job = shell(1, "pwd; env; cat; ls /proc/self/fd; cat /proc/self/oom_score_adj");
    job.environment.insert("GREETING".to_owned(), "a 'b' \"c\"\n$d".to_owned());
    job.directory = "/usr".into();
    let folder = launch(&state, job);
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let output = fs::read_to_string(folder.output()).unwrap();
    assert!(output.starts_with("/usr\n") && output.contains("GREETING=a 'b' \"c\"\n$d\n"), "{output}");
    assert!(!output.contains("CARGO"), "{output}");
    // 3 is the folder that `ls` reads.
    assert!(output.contains("\n0\n1\n2\n3\n100\n"), "{output}");
    // Without a shell, which might change it.
    let folder = launch(&state, order(2, &["grep", "Sig", "/proc/self/status"]));
    ended(&folder);
    let signals = fs::read_to_string(folder.output()).unwrap();
    assert!(signals.contains("SigBlk:\t0000000000000000\n"), "{signals}");
}

/// The signals in a line of `/proc/self/status`, without the two that belong to the C library.
pub(crate) fn ignored_signals(line: &str) -> u64 {
    u64::from_str_radix(line.trim().strip_prefix("SigIgn:\t").unwrap(), 16).unwrap() & !(0b11 << 31)
}

#[test]
fn a_job_ignores_no_signal_that_its_manager_ignores() {
    let state = tempfile::tempdir().unwrap();
    let deaf = state.path().join("deaf");
    fs::write(&deaf, format!("#!/bin/sh\ntrap '' HUP INT QUIT CHLD TERM USR1 USR2 TSTP\nexec {} \"$@\"\n", program().display())).unwrap();
    fs::set_permissions(&deaf, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let job = order(1, &["sh", "-c", "grep SigIgn /proc/self/status; exit 3"]);
    let folder = launch_by(&LaunchServer::new(deaf), &state, job);
    assert_eq!(ended(&folder).exit, Exit::Code(3), "the shim sees its exit");
    assert_eq!(ignored_signals(&fs::read_to_string(folder.output()).unwrap()), 0);
}

#[test]
fn a_job_may_open_as_many_files_as_its_order_says_and_ask_for_more() {
    let state = tempfile::tempdir().unwrap();
    let limits = |open_files| {
        let folder = launch(&state, Order { open_files, ..shell(open_files.unwrap_or(1), "ulimit -Sn; ulimit -Hn") });
        assert_eq!(ended(&folder).exit, Exit::Code(0));
        fs::read_to_string(folder.output()).unwrap()
    };
    let ours = limits(None);
    let (_, hard) = ours.split_once('\n').unwrap();
    assert_eq!(limits(Some(77)), format!("77\n{hard}"));
}

#[test]
fn a_failed_start_says_why() {
    let state = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = state.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let words = |order: Order| match exit_of(order) {
        Exit::NotStarted(words) => words.replace(state.path().to_str().unwrap(), "FOLDER"),
        other => panic!("{other:?}"),
    };
    let interpreter = file("interpreter", "#!/no/such/shell\n");
    fs::set_permissions(&interpreter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let message = [
        words(order(1, &["no-such-program"])),
        words(order(1, &["./no-such-file"])),
        words(order(1, &[&file("plain", "")])),
        words(order(1, &[&interpreter])),
        words(order(1, &[])),
        words(Order { directory: "/no/such/folder".into(), ..shell(1, "true") }),
        words(Order { directory: file("a file", "").into(), ..shell(1, "true") }),
        words(Order { output: Some("/no/such/folder/out".into()), ..shell(1, "true") }),
    ];
    insta::assert_snapshot!("shim-not-started", message.join("\n"));
}

#[test]
fn a_log_has_a_maximum_size() {
    let state = tempfile::tempdir().unwrap();
    let job = shell(1, "echo first; yes 0123456789abcdef0123456789abcdef0123456789abcdef | head -c 300000000; echo last");
    let folder = launch(&state, job);
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let log = fs::read_to_string(folder.output()).unwrap();
    assert!(log.len() <= 1 << 20 && log.starts_with("first\n0123") && log.ends_with("last\n"), "{} bytes", log.len());
    let (kept, rest) = log.split_once("\n[carma: ").unwrap();
    let (left_out, end) = rest.split_once(" bytes left out here]\n").unwrap();
    assert_eq!(kept.len() + left_out.parse::<usize>().unwrap() + end.len(), 300_000_000 + "first\nlast\n".len());
}

#[test]
fn a_job_that_closes_its_output_goes_on() {
    let state = tempfile::tempdir().unwrap();
    let go = state.path().join("go");
    let folder = launch(&state, shell(1, &format!("exec >&- 2>&-; while [ ! -e {} ]; do sleep 0.01; done; exit 7", go.display())));
    assert!(matches!(find(&folder).unwrap(), AttemptState::Running(_)));
    fs::write(go, "").unwrap();
    assert_eq!(ended(&folder).exit, Exit::Code(7));
}

#[test]
fn signals_reach_the_job_and_its_children() {
    let state = tempfile::tempdir().unwrap();
    let ready = state.path().join("ready");
    let waiting = |trap: &str| format!("{trap}; echo $$ > {}; while :; do sleep 0.01; done", ready.display());
    let told = |signal, order| {
        let _ = fs::remove_file(&ready);
        let folder = launch(&state, order);
        pid_in(&ready);
        running(&folder).signal(signal).unwrap();
        (ended(&folder).exit, log(&folder.output()))
    };
    let saves = waiting("trap 'echo saved; exit 0' USR1");
    let checkpointed = told(Signal::Checkpoint, Order { checkpoint_signal: 10, ..shell(1, &saves) });
    assert_eq!(checkpointed, (Exit::Code(0), "saved\n".to_owned()));
    assert_eq!(told(Signal::Checkpoint, shell(2, &waiting("trap 'echo saved; exit 5' TERM"))), (Exit::Code(5), "saved\n".to_owned()));
    assert_eq!(told(Signal::Terminate, shell(3, &waiting(":"))), (Exit::Signal(15), String::new()));
    assert_eq!(told(Signal::Kill, shell(4, &waiting("trap '' TERM INT HUP USR1"))), (Exit::Signal(9), String::new()));
    // The shell waits for its child, which must get the signal too.
    let child = format!("trap 'echo parent' TERM; sh -c '{}'; wait; exit 9", waiting("trap \"echo child; exit 0\" TERM"));
    assert_eq!(told(Signal::Terminate, shell(5, &child)), (Exit::Code(9), "child\nparent\n".to_owned()));
}

#[test]
fn an_attempt_is_run_once() {
    let state = tempfile::tempdir().unwrap();
    let count = state.path().join("count");
    let folder = launch(&state, shell(1, &format!("echo run >> {}", count.display())));
    let again = || super::carma(&["shim", folder.path().to_str().unwrap()]);
    until(|| count.exists().then_some(()));
    let first = ended(&folder);
    // Its guard may still be running.
    until(|| again().status.success().then_some(()));
    assert_eq!((ended(&folder), fs::read_to_string(count).unwrap().as_str()), (first, "run\n"));
    let twice = Prepared::new(folder.clone()).unwrap_err();
    assert!(matches!(twice, LaunchError::Folder { .. }), "{twice}");
    fs::remove_file(folder.path().join("exit.json")).unwrap();
    let output = again();
    assert!(!output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "carma: this attempt was started before, and never starts twice\n");
}

#[test]
fn an_attempt_folder_without_supervisor_is_unstarted_or_lost() {
    let state = tempfile::tempdir().unwrap();
    let folder = AttemptFolder::of(state.path(), attempt(1));
    assert!(matches!(find(&folder).unwrap(), AttemptState::NeverStarted), "never made");
    let prepared = Prepared::new(folder.clone()).unwrap();
    assert!(matches!(find(&folder).unwrap(), AttemptState::Starting));
    drop(prepared);
    assert!(matches!(find(&folder).unwrap(), AttemptState::NeverStarted), "its manager died");
    let missing = Prepared::new(AttemptFolder::of(state.path(), attempt(2))).unwrap();
    let refused = missing.launch(Plan { order: shell(2, "true"), script: None }, &LaunchServer::new("/no/such/carma")).unwrap_err();
    assert_eq!(refused.to_string(), "cannot run /no/such/carma as launch server: No such file or directory (os error 2)");
}
