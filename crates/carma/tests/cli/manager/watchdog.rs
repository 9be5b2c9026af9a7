//! The watchdog of a manager in its own process.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use carma_manager::client::Client;
use rustix::process::Signal;

use super::lab::until;
use super::up::{ManagerProcess, one};

const LIMIT: Duration = Duration::from_secs(5);
const CONFIGURATION: &str = "[manager]\nwatchdog_seconds = 5\n";

/// Submits held jobs until the manager no longer answers.
fn flood(up: &ManagerProcess) -> thread::JoinHandle<()> {
    let mut request = up.shell_job("true");
    request.schedule.hold = true;
    let (mut client, submission) = (up.client(), one(request));
    thread::spawn(move || while client.submit(&submission).is_ok() {})
}

#[test]
fn a_manager_with_a_stuck_part_exits_and_its_jobs_continue() {
    let mut up = ManagerProcess::stopped(None, CONFIGURATION);
    // The writer of the store waits for the log, which nothing reads.
    let mut process = up.command().stderr(Stdio::piped()).spawn().unwrap();
    until(|| Client::at(up.address()).ok()?.status().ok());
    let done = up.folder().join("done");
    let job = up.submit(up.shell_job(&format!("while [ ! -e go ]; do sleep 0.05; done; echo > {}", done.display())));
    let flood = flood(&up);
    let code = until(|| process.try_wait().unwrap()).code();
    assert_eq!(code, Some(1), "a service restarts it");
    flood.join().unwrap();
    up.start();
    assert_eq!(up.client().job(&job.0.to_string()).unwrap().attempts.len(), 1, "the same attempt goes on");
    fs::write(up.folder().join("go"), "").unwrap();
    assert!(up.wait_until_done(job).outcome().unwrap().succeeded() && done.exists());
}

#[test]
fn a_busy_or_stopped_manager_is_left_alone_and_tells_systemd_that_it_is_healthy() {
    let mut up = ManagerProcess::stopped(None, CONFIGURATION);
    let path = up.folder().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    up.set("NOTIFY_SOCKET", path);
    up.set("WATCHDOG_USEC", "5000000");
    up.start();
    let pid = up.client().status().unwrap().pid;
    let flood = flood(&up);
    thread::sleep(LIMIT + Duration::from_secs(1));
    let mut messages = Vec::new();
    let mut buffer = [0; 256];
    while let Ok(length) = socket.recv(&mut buffer) {
        messages.push(String::from_utf8_lossy(&buffer[..length]).trim().to_owned());
    }
    assert_eq!(messages.first().map(String::as_str), Some("READY=1"));
    assert!(messages.iter().filter(|message| *message == "WATCHDOG=1").count() >= 3, "{messages:?}");
    // As on a laptop that sleeps, or under a debugger.
    up.signal(Signal::STOP);
    thread::sleep(LIMIT + Duration::from_secs(1));
    up.signal(Signal::CONT);
    let until_end = Instant::now() + LIMIT / 2;
    while Instant::now() < until_end {
        assert_eq!(up.client().status().unwrap().pid, pid);
        thread::sleep(Duration::from_millis(100));
    }
    up.kill();
    flood.join().unwrap();
}
