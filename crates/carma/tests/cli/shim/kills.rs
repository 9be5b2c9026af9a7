//! Shims, guards and managers killed at the worst moment.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use carma_manager::attempt::{Exit, Order};
use carma_manager::heartbeat::{Heartbeats, Part};
use carma_manager::supervise::{AttemptFolder, AttemptState, ExitWatch, Owners, find};
use carma_manager::watchdog;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::{TIMEOUT, attempt, ended, is_there, launch, pid_in, running, shell, until};

/// Guard and shim of an attempt.
pub(super) fn supervisors(folder: &AttemptFolder) -> (i32, i32) {
    let text = fs::read(folder.path().join("shim.pid")).unwrap();
    let supervisor: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let pid = |who: &str| supervisor[who]["pid"].as_i64().unwrap().try_into().unwrap();
    (pid("guard"), pid("shim"))
}

/// Kills these processes as fast as possible.
pub(super) fn kill(pids: &[i32]) {
    for pid in pids {
        assert!(*pid > 1);
        // It may be gone already.
        let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
    }
}

/// A job with a child and a detached daemon. They write their pids to files.
pub(super) fn family(state: &TempDir) -> (String, [std::path::PathBuf; 3]) {
    let files = ["job", "child", "daemon"].map(|name| state.path().join(name));
    let [job, child, daemon] = files.each_ref().map(|file| file.display().to_string());
    let script = format!(
        "trap '' TERM HUP; sh -c 'echo $$ > {child}; sleep 3600' & \
         setsid sh -c \"(setsid sh -c 'echo \\$\\$ > {daemon}; exec sleep 3600' &)\" & \
         echo $$ > {job}; sleep 3600; sleep 3600"
    );
    (script, files)
}

pub(super) fn lost(folder: &AttemptFolder) {
    until(|| match find(folder).unwrap() {
        AttemptState::Lost => Some(()),
        AttemptState::Running(_) | AttemptState::Starting => None,
        AttemptState::NeverStarted => panic!("never begun"),
        AttemptState::Ended(ended) => panic!("{ended:?}"),
    });
}

#[test]
fn all_processes_of_a_job_die_with_its_shim() {
    let state = tempfile::tempdir().unwrap();
    let (script, files) = family(&state);
    let folder = launch(&state, shell(1, &script));
    let pids = files.map(|file| pid_in(&file));
    assert!(pids.into_iter().all(is_there));
    let supervised = running(&folder);
    assert!(pids.iter().all(|pid| supervised.processes().contains(pid)), "{:?}", supervised.processes());
    let owners = Owners::of([(attempt(1), &supervised)]);
    assert!(pids.iter().all(|pid| owners.owner_of(pid.cast_unsigned()) == Some(attempt(1))));
    assert_eq!(owners.owner_of(std::process::id()), None);
    kill(&[supervisors(&folder).1]);
    lost(&folder);
    assert_eq!(pids.map(is_there), [false; 3], "gone before it counts as lost");
}

#[test]
fn with_control_groups_killed_guard_and_shim_leave_nothing() {
    let state = tempfile::tempdir().unwrap();
    let (script, files) = family(&state);
    let folder = launch(&state, shell(1, &script));
    let [job, others @ ..] = files.map(|file| pid_in(&file));
    let (guard, shim) = supervisors(&folder);
    let supervisor = fs::read_to_string(folder.path().join("shim.pid")).unwrap();
    kill(&[guard, shim]);
    lost(&folder);
    until(|| (!is_there(job)).then_some(()));
    if supervisor.contains("\"cgroup\":null") {
        eprintln!("no control groups here: processes that detached themselves live on");
        kill(&others);
    } else {
        assert_eq!(others.map(is_there), [false; 2]);
    }
}

#[test]
fn without_its_guard_a_job_continues() {
    let state = tempfile::tempdir().unwrap();
    let go = state.path().join("go");
    let folder = launch(&state, shell(1, &format!("while [ ! -e {} ]; do sleep 0.01; done; exit 4", go.display())));
    let (sender, exits) = mpsc::channel();
    let watch =
        ExitWatch::new(Heartbeats::default().start(Part::Exits), move |attempt, standing| sender.send((attempt, standing)).unwrap())
            .unwrap();
    watch.add(attempt(1), running(&folder)).unwrap();
    kill(&[supervisors(&folder).0]);
    until(|| (!is_there(supervisors(&folder).0)).then_some(()));
    assert!(exits.recv_timeout(Duration::from_millis(50)).is_err(), "it goes on");
    fs::write(go, "").unwrap();
    let (who, standing) = exits.recv_timeout(TIMEOUT).unwrap();
    assert!(who == attempt(1) && matches!(standing, Ok(AttemptState::Ended(ended)) if ended.exit == Exit::Code(4)));
}

#[test]
fn a_stuck_report_of_an_exit_ends_the_manager() {
    let state = tempfile::tempdir().unwrap();
    let heartbeats = Heartbeats::default();
    let (release, released) = mpsc::channel::<()>();
    let watch = ExitWatch::new(heartbeats.start(Part::Exits), move |_, _| _ = released.recv()).unwrap();
    let (sender, stuck) = mpsc::channel();
    watchdog::watch(&heartbeats, Some(Duration::from_secs(3)), || {}, move |stuck| sender.send(stuck).unwrap()).unwrap();
    assert!(stuck.recv_timeout(Duration::from_secs(5)).is_err(), "an idle watch is healthy");
    watch.add(attempt(1), running(&launch(&state, shell(1, "sleep 0.1")))).unwrap();
    assert_eq!(stuck.recv_timeout(TIMEOUT).unwrap().part, Part::Exits);
    drop(release);
}

#[test]
fn processes_that_a_job_leaves_behind_end_with_it() {
    let state = tempfile::tempdir().unwrap();
    let (script, [_, child, daemon]) = family(&state);
    let script = script.replace("sleep 3600; sleep 3600", &format!("while [ ! -s {} ]; do sleep 0.01; done; exit 2", daemon.display()));
    let folder = launch(&state, shell(1, &script));
    assert_eq!(ended(&folder).exit, Exit::Code(2));
    assert_eq!([child, daemon].map(|file| is_there(pid_in(&file))), [false; 2]);
}

#[test]
fn the_files_of_an_mps_daemon_are_removed_after_any_death() {
    let state = tempfile::tempdir().unwrap();
    let removed = state.path().join("removed");
    let remove = ["sh", "-c", &format!("echo gone >> {}", removed.display())].map(str::to_owned).to_vec();
    let job = |number, script| Order { afterwards: Some(remove.clone()), ..shell(number, script) };
    ended(&launch(&state, job(1, "exit 0")));
    assert_eq!(fs::read_to_string(&removed).unwrap(), "gone\n");
    let folder = launch(&state, job(2, "sleep 3600"));
    kill(&[supervisors(&folder).1]);
    lost(&folder);
    assert_eq!(fs::read_to_string(&removed).unwrap(), "gone\ngone\n");
}

#[test]
fn a_shim_killed_at_any_moment_leaves_nothing_and_never_runs_twice() {
    let state = tempfile::tempdir().unwrap();
    let runs = state.path().join("runs");
    for round in 0..30 {
        let folder = launch(&state, shell(round, &format!("echo {round} $$ >> {}; exec sleep 3600", runs.display())));
        // From at once to long after the job began.
        if round < 29 {
            std::thread::sleep(Duration::from_micros(round * round * 20));
        } else {
            // At least one has started.
            until(|| runs.exists().then_some(()));
        }
        kill(&[supervisors(&folder).1]);
        lost(&folder);
        assert!(!super::super::carma(&["shim", folder.path().to_str().unwrap()]).status.success());
    }
    let runs = fs::read_to_string(runs).unwrap_or_default();
    let mut seen = std::collections::BTreeSet::new();
    for line in runs.lines() {
        let (round, pid) = line.split_once(' ').unwrap();
        assert!(seen.insert(round.to_owned()), "run twice: {round}");
        assert!(!is_there(pid.parse().unwrap()));
    }
    assert!(!seen.is_empty(), "all were killed too early to show anything");
}

#[test]
fn jobs_outlive_the_process_that_launched_them() {
    let state = tempfile::tempdir().unwrap();
    let go = state.path().join("go");
    let folder = AttemptFolder::of(state.path(), attempt(1));
    // A launcher of its own, killed with its whole group as soon as the shim has started.
    fs::create_dir_all(folder.path()).unwrap();
    let order = shell(1, &format!("while [ ! -e {} ]; do sleep 0.01; done; echo done", go.display()));
    fs::write(folder.path().join("order.json"), serde_json::to_vec(&order).unwrap()).unwrap();
    let script = "\"$0\" shim \"$1\" && echo $$ && sleep 3600";
    let mut launcher = Command::new("sh");
    launcher.args(["-c", script]).arg(super::program()).arg(folder.path()).process_group(0).stdout(Stdio::piped());
    let mut launcher = launcher.spawn().unwrap();
    until(|| Path::new(&folder.path().join("shim.pid")).exists().then_some(()));
    kill_process_group(Pid::from_child(&launcher), Signal::KILL).unwrap();
    launcher.wait().unwrap();
    let (sender, exits) = mpsc::channel();
    let watch = ExitWatch::new(Heartbeats::default().start(Part::Exits), move |_, standing| sender.send(standing).unwrap()).unwrap();
    watch.add(attempt(1), running(&folder)).unwrap();
    fs::write(go, "").unwrap();
    let standing = exits.recv_timeout(TIMEOUT).unwrap();
    assert!(matches!(standing, Ok(AttemptState::Ended(ended)) if ended.exit == Exit::Code(0)));
    assert_eq!(fs::read_to_string(folder.output()).unwrap(), "done\n");
}

#[test]
fn a_shim_without_its_folder_ends() {
    let state = tempfile::tempdir().unwrap();
    let (began, go) = (state.path().join("began"), state.path().join("go"));
    let folder = launch(&state, shell(1, &format!("echo > {}; while [ ! -e {} ]; do sleep 0.01; done", began.display(), go.display())));
    let (guard, shim) = supervisors(&folder);
    // Until then the shim adds files to the folder.
    until(|| began.exists().then_some(()));
    fs::remove_dir_all(folder.path()).unwrap();
    fs::write(go, "").unwrap();
    until(|| (!is_there(guard) && !is_there(shim)).then_some(()));
}
