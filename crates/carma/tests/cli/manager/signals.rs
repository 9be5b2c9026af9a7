//! Signals and `carma config reload`: the configuration is read again, and only TERM and INT stop the manager.

use std::fs;
use std::process::{Command, Output};

use rustix::process::Signal;

use super::lab::{program, until};
use super::up::ManagerProcess;
use crate::shim::ignored_signals;

fn write_configuration(up: &ManagerProcess, text: &str) {
    fs::write(up.folder().join("carma.toml"), text).unwrap();
}

fn policy(up: &ManagerProcess) -> String {
    up.client().status().unwrap().policy
}

fn reload(up: &ManagerProcess) -> Output {
    Command::new(program()).args(["config", "reload"]).env("CARMA_SOCKET", up.places().socket).output().unwrap()
}

#[test]
fn hup_reloads_the_configuration_and_a_bad_file_changes_nothing() {
    let up = ManagerProcess::new(None, "policy = \"magm\"\n");
    let pid = up.client().status().unwrap().pid;
    write_configuration(&up, "policy = \"exclusive\"\n[manager.logs]\nsize = 7\n");
    up.signal(Signal::HUP);
    until(|| (policy(&up) == "exclusive").then_some(()));
    until(|| up.log_text().contains("configuration reloaded; these keys need a restart: manager.logs.size").then_some(()));
    write_configuration(&up, "policy = \"no-such-policy\"\n");
    up.signal(Signal::HUP);
    until(|| up.log_text().contains("configuration not reloaded, nothing changed").then_some(()));
    // USR1 and USR2 change nothing: the same process handles the next signal.
    up.signal(Signal::USR1);
    up.signal(Signal::USR2);
    write_configuration(&up, "policy = \"lug\"\n");
    up.signal(Signal::HUP);
    until(|| (policy(&up) == "lug").then_some(()));
    assert_eq!(up.client().status().unwrap().pid, pid);
}

#[test]
fn a_manager_that_was_started_with_ignored_signals_sees_how_jobs_end() {
    let mut up = ManagerProcess::stopped(None, "");
    up.ignore("HUP,INT,QUIT,CHLD");
    up.start();
    let job = up.submit(up.shell_job("grep SigIgn /proc/self/status; exit 3"));
    assert_eq!(up.wait_until_done(job).outcome().map(ToString::to_string).as_deref(), Some("failed with exit code 3"));
    let printed = fs::read_to_string(up.state().join(format!("attempts/{}/1/stdout.log", job.0))).unwrap();
    assert_eq!(ignored_signals(&printed), 0, "{printed}");
}

#[test]
fn config_reload_reports_the_values_in_force() {
    let up = ManagerProcess::new(None, "policy = \"magm\"\n");
    write_configuration(&up, "policy = \"bf\"\n[manager]\noperators = \"wheel\"\n");
    let output = reload(&up);
    let message = String::from_utf8(output.stdout).unwrap();
    assert_eq!(message, "configuration reloaded\nthese keys need a restart of the manager: manager.operators\n");
    assert_eq!(policy(&up), "bf");
    write_configuration(&up, "queue = 1\n");
    let output = reload(&up);
    assert!(!output.status.success() && String::from_utf8(output.stderr).unwrap().contains("queue"));
    assert_eq!(policy(&up), "bf");
}
