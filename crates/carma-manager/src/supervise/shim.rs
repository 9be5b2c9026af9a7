//! The shim: runs the job, keeps its output, passes signals on, and records how it ended.

use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{WaitOptions, waitpid};

use super::cgroup::Cgroup;
use super::child::{Child, Streams, start};
use super::console::Console;
use super::folder::{AttemptFolder, ReservedExit, owned};
use super::log::BoundedLog;
use super::processes::kill_descendants;
use super::running::RunningJob;
use super::signals::SignalPlan;
use super::stream::Stream;
use super::supervisor_log::log_line;
use super::switches::SwitchLog;
use super::user_processes::UserProcesses;
use crate::attempt::{Ended, Exit, Order};

/// Signals of the manager to the shim.
pub(super) const CHECKPOINT: Signal = Signal::SIGUSR1;
pub(super) const TERMINATE: Signal = Signal::SIGTERM;
pub(super) const KILL: Signal = Signal::SIGUSR2;

/// How long the command that cleans up after an attempt may take.
pub(crate) const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60);
/// How long until writing the exit is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Signals that guard and shim block.
pub(super) fn signals() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, CHECKPOINT, TERMINATE, KILL].into_iter().collect()
}

/// Runs the attempt to its end.
pub(super) fn supervise(
    folder: &AttemptFolder,
    order: &Order,
    cgroup: Option<&Cgroup>,
    processes: io::Result<UserProcesses>,
    record: &mut ReservedExit,
) {
    let started = SystemTime::now();
    let exit = run(folder, order, cgroup, processes).unwrap_or_else(Exit::NotStarted);
    let ended = SystemTime::now();
    let (oom_kills, at_memory_limit) = (cgroup.and_then(Cgroup::oom_kills), cgroup.is_some_and(Cgroup::is_at_memory_limit));
    clean_up(order, cgroup);
    let ended = Ended { exit, started, ended, oom_kills, at_memory_limit };
    // Until it is written, the attempt counts as running, not as lost.
    if let Err(error) = record.write(&ended) {
        log_line(format_args!("cannot store the exit, trying again: {error}"));
        // Without the folder, nothing will ever read it.
        let is_gone = || fs::metadata(folder.path()).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        while record.write(&ended).is_err() && !is_gone() {
            thread::sleep(RETRY);
        }
    }
}

/// Kills and removes all leftovers of an attempt.
pub(super) fn clean_up(order: &Order, cgroup: Option<&Cgroup>) {
    kill_descendants(cgroup);
    if let Some(command) = &order.afterwards {
        let order = Order { directory: "/".into(), ..order.clone() };
        match start(&order, command, Streams::None, None) {
            Ok(child) => {
                let until = Instant::now() + CLEANUP_TIMEOUT;
                while matches!(waitpid(Some(child.pid), WaitOptions::NOHANG), Ok(None)) && Instant::now() < until {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            Err(text) => log_line(format_args!("{text}")),
        }
        kill_descendants(None);
    }
    if let Some(cgroup) = cgroup {
        cgroup.end();
    }
}

fn run(folder: &AttemptFolder, order: &Order, cgroup: Option<&Cgroup>, processes: io::Result<UserProcesses>) -> Result<Exit, String> {
    let cannot = |what: &str, error: io::Error| format!("cannot {what}: {error}");
    let user = order.user.as_ref();
    let [output, errors] = [folder.output(), folder.errors()].map(|path| BoundedLog::new(path, order.log_limit));
    let switches = SwitchLog::new(folder.switches(), order.log_limit);
    // The user does not own the folder, so the file must exist already.
    owned(&folder.progress(), user).map_err(|error| cannot("make a file for its progress", error))?;
    let mut processes = processes.map_err(|error| cannot("start processes of its user", error))?;
    processes.wait_until_ready(folder)?;
    let asked = SignalFd::with_flags(&signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
    let asked = asked.map_err(|error| cannot("listen to signals", error.into()))?;

    let console = order.terminal.as_ref().map(|terminal| Console::open(folder, terminal, user)).transpose();
    let console = console.map_err(|error| cannot("make its terminal", error))?;

    let terminal = console.as_ref().and_then(Console::job_side);
    let Child { pid: job, pipes: [output_pipe, errors_pipe] } =
        start(order, &order.command, terminal.map_or(Streams::Pipes, Streams::Terminal), cgroup)?;
    let printed = console.as_ref().map(Console::output).transpose().map_err(|error| cannot("read its terminal", error))?;
    let streams = [Stream::new(printed.or(output_pipe), output), Stream::new(errors_pipe, errors)];
    let running = RunningJob::new(folder, job, streams, switches, processes, console, SignalPlan::new(job, order, cgroup));
    let mut running = running.leased(order.lease.as_deref());
    let exit = running.serve(&asked);
    // The others' output until their end belongs to the log. Foreign processes that hold the pipe are not waited for.
    kill_descendants(cgroup);
    running.finish(&exit);
    Ok(exit)
}
