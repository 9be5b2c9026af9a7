//! Full disks, damaged files, lost GPUs: a clear message, nothing lost, and recovery.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use carma_core::{Outcome, State};
use carma_emu::VARIABLE;
use carma_manager::api::{HistoryQuery, JobAction, Shutdown};
use carma_manager::client::{Address, Client, ClientError};
use carma_testing::{Missing, as_nobody, need};
use fastrand::Rng;

use super::lab::{Killed, program, until};
use super::up::{ManagerProcess, one};

/// The error of a manager that does not start.
fn refusal(up: &ManagerProcess) -> String {
    let before = up.log_text().len();
    let mut process = up.command().spawn().unwrap();
    let status = until(|| {
        let listens = up.log_text()[before..].contains("listens on");
        listens.then(|| process.kill());
        process.try_wait().unwrap()
    });
    assert_eq!(status.code(), Some(1), "{}", up.log_text());
    // Long lines are wrapped.
    up.log_text()[before..].split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Stops the manager in order, so that all of its state is in one file.
fn stop(up: &mut ManagerProcess) {
    up.client().shutdown(Shutdown::default()).unwrap();
    assert!(up.ended());
}

#[test]
fn a_second_manager_is_refused_with_the_holder() {
    let up = ManagerProcess::new(None, "");
    let words = refusal(&up);
    assert!(words.contains(&format!("in use by the manager with process number {}", up.pid())), "{words}");
    assert_eq!(up.client().status().unwrap().pid, up.pid(), "the first goes on");
}

#[test]
fn a_socket_that_a_dead_manager_left_is_replaced() {
    let mut up = ManagerProcess::new(None, "");
    up.kill();
    assert!(up.places().socket.exists());
    let error = Client::at(up.address()).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    up.start();
    assert_eq!(up.wait_until_done(up.submit(up.shell_job("true"))).outcome(), Some(&Outcome::Succeeded));
}

#[test]
fn a_later_versions_state_and_a_damaged_one_are_refused_by_name_and_left_alone() {
    const VERSION: std::ops::Range<usize> = 60..64;
    const JOBS: usize = 60;
    let mut up = ManagerProcess::new(None, "");
    // So much that SQLite moves it from its log to the file.
    let mut job = up.shell_job("true");
    job.schedule.hold = true;
    job.environment.insert("PADDING".to_owned(), "x".repeat(100_000));
    for _ in 0..JOBS {
        up.submit(job.clone());
    }
    stop(&mut up);
    let database = up.places().database();
    // The WAL would hide the damage of the file.
    let log = format!("{}-wal", database.display());
    let aside = up.folder().join("log");
    let has_log = fs::rename(&log, &aside).is_ok();
    let whole = fs::read(&database).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&database, bytes).unwrap();
        let words = refusal(&up);
        assert!(words.contains(database.to_str().unwrap()), "{words}");
        assert!(fs::read(&database).unwrap() == bytes, "it was left alone");
        words
    };
    let mut later = whole.clone();
    later[VERSION].copy_from_slice(&900_u32.to_be_bytes());
    let words = refused(&later);
    assert!(words.contains("use a newer carma"), "{words}");
    let mut damaged = whole.clone();
    damaged[..100].fill(b'x');
    assert!(refused(&damaged).contains("is damaged or not a database"));
    fs::write(&database, whole).unwrap();
    if has_log {
        fs::rename(aside, log).unwrap();
    }
    up.start();
    assert_eq!(up.client().history(&HistoryQuery::default()).unwrap().len(), JOBS);
}

#[test]
fn state_that_may_not_be_written_is_refused_with_a_reason() {
    let up = ManagerProcess::stopped(None, "");
    fs::set_permissions(up.folder(), Permissions::from_mode(0o555)).unwrap();
    let mut command = need!(as_nobody(program()));
    let output = command.arg("up").arg("--no-gpus").arg("--state").arg(up.state()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("cannot be written: check the permissions"), "{words}");
}

#[test]
fn a_power_cut_loses_only_the_torn_end_of_the_write_ahead_log() {
    let mut random = Rng::with_seed(11);
    for _ in 0..5 {
        let mut up = ManagerProcess::new(None, "");
        let mut acknowledged = Vec::new();
        for number in 0..8 {
            let job = up.submit(up.shell_job(&format!("exit {number}")));
            acknowledged.push(job);
            up.wait_until_done(job);
        }
        up.kill();
        let log = format!("{}-wal", up.places().database().display());
        let file = File::options().write(true).open(&log).unwrap();
        file.set_len(random.u64(0..=file.metadata().unwrap().len())).unwrap();
        drop(file);
        up.start();
        let mut known: Vec<_> = up.client().history(&HistoryQuery::default()).unwrap().into_iter().map(|job| job.id).collect();
        known.sort_unstable();
        assert!(acknowledged.starts_with(&known), "{known:?}");
        // New jobs do not collide with lost ones.
        let new = up.submit(up.shell_job("exit 77"));
        assert!(!acknowledged.contains(&new));
        assert_eq!(up.wait_until_done(new).outcome(), Some(&Outcome::Failed { code: 77 }));
        for job in known {
            let code = i32::try_from(job.0).unwrap() - 1;
            let expected = if code == 0 { Outcome::Succeeded } else { Outcome::Failed { code } };
            assert_eq!(up.wait_until_done(job).outcome(), Some(&expected));
        }
    }
}

/// A manager on a small private file system, and access to it.
fn on_a_small_disk(up: &ManagerProcess) -> Result<(Killed, Address, std::path::PathBuf), Missing> {
    let state = up.state();
    fs::create_dir(&state).unwrap();
    let mount = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c"])
            .arg(format!("mount -t tmpfs -o size=4m tmpfs \"$0\" && {script}"))
            .arg(&state);
        command
    };
    if !mount("true").status().is_ok_and(|status| status.success()) {
        return Err(Missing::Mounts);
    }
    let mut command = mount("exec \"$1\" up --state \"$0\" --no-gpus --config \"$2\"");
    command.arg(program()).arg(up.folder().join("carma.toml")).stderr(File::create(up.log()).unwrap());
    let child = Killed(command.spawn().unwrap());
    let seen = Path::new("/proc").join(child.0.id().to_string()).join("root").join(state.strip_prefix("/").unwrap());
    Ok((child, Address::Socket(seen.join("carma.sock")), seen))
}

#[test]
fn a_full_disk_refuses_submissions_keeps_jobs_and_resumes_when_there_is_room() {
    let up = ManagerProcess::stopped(None, "[manager.host]\ndisk = 0\n");
    let (_manager, address, seen) = need!(on_a_small_disk(&up));
    let mut client = until(|| Client::at(address.clone()).ok());
    let job = |up: &ManagerProcess| {
        let mut job = up.shell_job("true");
        job.environment.insert("PADDING".to_owned(), "x".repeat(20_000));
        one(job)
    };
    let mut held = job(&up);
    held.job.schedule.hold = true;
    let mut acknowledged = vec![client.submit(&held).unwrap().jobs[0]];
    let mut stubborn = one(up.shell_job("trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done"));
    stubborn.job.name = Some("runs".to_owned());
    let running = client.submit(&stubborn).unwrap().jobs[0];
    let exit = seen.join(format!("attempts/{}/1/exit.json", running.0));
    // It counts as running before it does.
    let output = seen.join(format!("attempts/{}/1/stdout.log", running.0));
    until(|| fs::read_to_string(&output).ok().filter(|printed| printed == "ready\n"));
    let ballast = seen.join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let refused = until(|| match client.submit(&job(&up)) {
        Ok(submitted) => {
            acknowledged.extend(submitted.jobs);
            None
        }
        Err(ClientError::Refused(problem)) => Some(problem),
        Err(error) => panic!("{error}: {}", up.log_text()),
    });
    assert_eq!(refused.kind.status(), 503, "{refused}");
    assert!(refused.message.starts_with("nothing was changed: ") && refused.message.contains("the disk is full"), "{refused}");
    let problems = client.status().unwrap().problems.join("\n");
    assert!(problems.contains("no job can be accepted or started"), "{problems}");
    // A running job can still be stopped.
    let cancelled = client.act(&running.0.to_string(), &JobAction::Cancel).unwrap();
    let told = &cancelled.not_done[0].reason;
    assert!(cancelled.done.is_empty() && told.contains("it was signalled") && told.contains("not stored yet"), "{told}");
    until(|| exit.exists().then_some(()));
    drop(file);
    fs::remove_file(ballast).unwrap();
    acknowledged.push(until(|| client.submit(&job(&up)).ok()).jobs[0]);
    let outcome = |client: &mut Client, job: carma_core::JobId| client.job(&job.0.to_string()).unwrap().outcome().cloned();
    assert_eq!(until(|| outcome(&mut client, running)), Outcome::Cancelled, "it is recorded afterwards");
    for job in &acknowledged[1..] {
        assert_eq!(until(|| outcome(&mut client, *job)), Outcome::Succeeded, "{}", up.log_text());
    }
    assert!(matches!(client.job(&acknowledged[0].0.to_string()).unwrap().state, State::Held { .. }));
    assert_eq!(client.history(&HistoryQuery::default()).unwrap().len(), acknowledged.len() + 1);
}

/// Injects a fault into the emulated GPUs.
fn fault(up: &ManagerProcess, words: &[&str]) {
    let machine = up.machine.as_ref().unwrap();
    let output = Command::new(program()).args(["emu", "fault"]).args(words).env(VARIABLE, machine.folder()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A job that trains on a GPU until the gate is open.
fn training(up: &ManagerProcess, gate: &Path) -> carma_manager::request::JobRequest {
    let carma = program().display();
    let train = format!("{carma} emu train --workload efficientnet_cifar100_bs128_20e --memory 4GiB");
    // It trains long the first time, and briefly once the gate is open.
    let script = format!("if test -e {0}; then exec {train} --seconds 10; else exec {train} --seconds 1000000; fi", gate.display());
    let mut job = up.shell_job(&script);
    job.resources.gpus = 1;
    job
}

fn device_of(state: &State) -> Option<String> {
    Some(state.active()?.placement.devices[0].device.to_string())
}

#[test]
fn jobs_of_a_lost_gpu_come_back_elsewhere_whether_a_manager_saw_it_or_not() {
    for while_up in [true, false] {
        let mut up = ManagerProcess::new(Some(("2xA100-40GB", 60.0)), "");
        let gate = up.folder().join("gate");
        let job = up.submit(training(&up, &gate));
        let mut client = up.client();
        let placed = until(|| {
            let detail = client.job(&job.0.to_string()).unwrap();
            matches!(detail.state, State::Running(_)).then(|| device_of(&detail.state).unwrap())
        });
        fs::write(&gate, "").unwrap();
        let number = placed.trim_start_matches("s0/gpu").to_owned();
        if !while_up {
            up.kill();
        }
        fault(&up, &["lost", "--gpu", &number]);
        if !while_up {
            up.start();
        }
        let over = up.wait_until_done(job);
        assert_eq!(over.outcome(), Some(&Outcome::Succeeded), "{:?}\n{}", over.events, up.log_text());
        let [first, .., last] = &over.attempts[..] else { panic!("{:?}", over.attempts) };
        assert_ne!(first.placement.devices[0].device, last.placement.devices[0].device);
        let is_lost = |problem: &String| problem.contains("is lost");
        let status = up.client().status().unwrap();
        assert!(status.problems.iter().any(is_lost), "{:?}", status.problems);
        fault(&up, &["back", "--gpu", &number]);
        // A GPU lost while no manager ran is checked once a minute.
        if while_up {
            until(|| (!up.client().status().unwrap().problems.iter().any(is_lost)).then_some(()));
        }
    }
}

#[test]
fn a_driver_that_hangs_does_not_delay_others() {
    let up = ManagerProcess::new(Some(("1xA100-40GB", 60.0)), "");
    fault(&up, &["hang"]);
    let begin = Instant::now();
    assert_eq!(up.wait_until_done(up.submit(up.shell_job("true"))).outcome(), Some(&Outcome::Succeeded));
    up.client().status().unwrap();
    up.client().gpus().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    fault(&up, &["clear"]);
    let gate = up.folder().join("gate");
    fs::write(&gate, "").unwrap();
    let over = up.wait_until_done(up.submit(training(&up, &gate)));
    assert_eq!(over.outcome(), Some(&Outcome::Succeeded), "{:?}\n{}", over.events, up.log_text());
}
