//! `carma down`: ends the manager, not its jobs.

use std::io::Write;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use carma_manager::api::{Counts, Shutdown};
use carma_manager::client::{Address, Client, ClientError};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::common::Manager;
use carma_format::count;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(after_help = "\
Running jobs continue without a manager. The next `carma up` finds them, and all \
waiting jobs. The command returns when the manager has ended.\n\nExample:\n  carma down --drain")]
pub(crate) struct Arguments {
    /// Start no more jobs, and stop when no job runs.
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let process = process(client)?;
    client.shutdown(Shutdown { drain: arguments.drain })?;
    let mut reported = None;
    while !gone(process.as_ref()) {
        match client.status() {
            Ok(status) => progress(&mut reported, status.jobs, arguments.drain),
            // If its process is not visible, an unreachable manager has ended.
            Err(ClientError::Unreachable { .. } | ClientError::BrokenOff(_)) if process.is_none() => break,
            Err(_) => {}
        }
    }
    Ok(writeln!(output, "the manager is down")?)
}

/// The manager's process, if it runs on this machine and is visible.
fn process(client: &mut Client) -> Result<Option<OwnedFd>> {
    let pid = client.status()?.pid;
    let local = matches!(client.address(), Address::Socket(_)).then(|| Pid::from_raw(pid.cast_signed())).flatten();
    Ok(local.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()))
}

/// Waits a moment for the end of the process.
fn gone(process: Option<&OwnedFd>) -> bool {
    let Some(process) = process else {
        thread::sleep(POLL_INTERVAL);
        return false;
    };
    let timeout = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.as_nanos() as _ };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

fn progress(reported: &mut Option<u64>, Counts { running, .. }: Counts, drain: bool) {
    if drain && reported.replace(running) != Some(running) && running > 0 {
        eprintln!("carma: waiting for {}", count(running as usize, "running job"));
    }
}
