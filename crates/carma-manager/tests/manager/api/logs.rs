//! Logs and terminals through the API, of an attempt that is only on paper.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::SystemTime;

use carma_core::{AttemptId, JobId, State, Time};
use carma_manager::attempt::{Ended, Exit};
use carma_manager::request::Owner;
use carma_manager::store::{Change, UnixMillis};
use carma_manager::supervise::AttemptFolder;

use super::lab::{Answer, Lab};
use crate::store::lab::{placement, started, stored};

/// A running job of the user who runs this, and the folder of its attempt.
fn under_way(lab: &Lab) -> (JobId, AttemptFolder) {
    let id = lab.store.next_jobs(1);
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut job = stored(id, Owner { uid, gid, name: "me".to_owned() }, None);
    lab.store.write([Change::JobAccepted(Box::new(job.clone()))]).wait().unwrap();
    let attempt = AttemptId { job: id, number: 1 };
    job.job.state = State::Running(carma_core::Active {
        attempt,
        placement: placement(),
        launched_at: Time::ZERO,
        stopping: None,
        needed: None,
        idle: None,
        ended_at: None,
        stall: None,
    });
    job.job.attempts = 1;
    lab.store.write([Change::JobChanged { job: Box::new(job.job), at: UnixMillis::now() }, started(id, 1)]).wait().unwrap();
    let folder = AttemptFolder::of(&lab.path(), attempt);
    fs::create_dir_all(folder.path()).unwrap();
    (id, folder)
}

fn append(path: PathBuf, text: &str) {
    fs::File::options().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn logs_are_read_whole_by_line_and_by_attempt() {
    let lab = Lab::new();
    let (job, folder) = under_way(&lab);
    append(folder.output(), "one\ntwo\nthree\n");
    append(folder.errors(), "oh\n");
    let read = |query: &str| lab.ask("GET", &format!("/v1/jobs/{}/logs{query}", job.0), "").text();
    assert_eq!(read(""), "one\ntwo\nthree\n");
    assert_eq!(read("?lines=2"), "two\nthree\n");
    assert_eq!(read("?stream=stderr&attempt=1"), "oh\n");
    assert_eq!(lab.problem("GET", &format!("/v1/jobs/{}/logs?attempt=2", job.0), "").0, 404);
    let (status, problem) = lab.problem("GET", &format!("/v1/jobs/{}/terminal", job.0), "");
    assert!(status == 400 && problem.message.contains("Upgrade"), "{problem}");
    let waiting = lab.submit(&super::lab::job("waiting"), None)[0];
    assert_eq!(lab.problem("GET", &format!("/v1/jobs/{waiting}/logs"), "").0, 409);
}

#[test]
fn a_log_is_followed_until_its_attempt_is_over() {
    let lab = Lab::new();
    let (job, folder) = under_way(&lab);
    append(folder.output(), "one\n");
    let mut followed = lab.ask("GET", &format!("/v1/jobs/{}/logs?follow=true", job.0), "");
    assert_eq!(followed.piece().unwrap(), "one\n");
    append(folder.output(), "two\n");
    assert_eq!(followed.piece().unwrap(), "two\n");
    append(folder.output(), "three\n");
    let ended =
        Ended { exit: Exit::Code(0), started: SystemTime::now(), ended: SystemTime::now(), oom_kills: None, at_memory_limit: false };
    let new = folder.path().join("exit.json.new");
    fs::write(&new, serde_json::to_vec(&ended).unwrap()).unwrap();
    fs::rename(new, folder.path().join("exit.json")).unwrap();
    assert_eq!(followed.text(), "three\n");
}

#[test]
fn the_log_of_a_job_that_never_started_ends_with_the_job() {
    let lab = Lab::new();
    let job = lab.submit(&super::lab::job("never"), None)[0];
    let followed = lab.ask("GET", &format!("/v1/jobs/{job}/logs?follow=true"), "");
    lab.post(&format!("/v1/jobs/{job}/cancel"), &serde_json::json!({}));
    assert_eq!(followed.text(), "");
}

#[test]
fn a_terminal_is_relayed_in_both_directions() {
    let lab = Lab::new();
    let (job, folder) = under_way(&lab);
    let shim = UnixListener::bind(folder.path().join("terminal")).unwrap();
    let mut client = lab.connect();
    let head = "HTTP/1.1\r\nhost: carma\r\nconnection: upgrade\r\nupgrade: carma-terminal\r\n\r\n";
    client.write_all(format!("GET /v1/jobs/{}/terminal {head}", job.0).as_bytes()).unwrap();
    let mut answer = Answer::new(client.try_clone().unwrap());
    assert_eq!(answer.status, 101);
    let mut shim = shim.accept().unwrap().0;
    client.write_all(b"keys").unwrap();
    let mut keys = [0; 4];
    shim.read_exact(&mut keys).unwrap();
    shim.write_all(b"screen").unwrap();
    drop(shim);
    let mut screen = String::new();
    answer.body.read_to_string(&mut screen).unwrap();
    assert_eq!((&keys, screen.as_str()), (b"keys", "screen"));
}
