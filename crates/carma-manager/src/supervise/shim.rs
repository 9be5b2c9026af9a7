//! The shim: runs the job, keeps its output, passes signals on, and writes down how it ended.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::cgroup::Cgroup;
use super::child::{number, start, with_rights_of};
use super::family::end_descendants;
use super::folder::{AttemptFolder, ReservedExit, owned};
use super::log::BoundedLog;
use crate::attempt::{Ended, Exit, Order, RunAs};

/// What the manager sends to the shim.
pub(super) const CHECKPOINT: Signal = Signal::SIGUSR1;
pub(super) const TERMINATE: Signal = Signal::SIGTERM;
pub(super) const KILL: Signal = Signal::SIGUSR2;

/// How long the command that cleans up after an attempt may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long we wait before we try again to write an exit down.
const AGAIN: Duration = Duration::from_secs(1);

/// Signals that guard and shim never take by surprise.
pub(super) fn signals() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGHUP, Signal::SIGINT, CHECKPOINT, TERMINATE, KILL].into_iter().collect()
}

/// Runs the attempt to its end.
pub(super) fn supervise(folder: &AttemptFolder, order: &Order, cgroup: Option<&Cgroup>, mut record: ReservedExit) {
    let started = SystemTime::now();
    let exit = run(folder, order, cgroup).unwrap_or_else(Exit::NotStarted);
    let ended = SystemTime::now();
    clear_up(order, cgroup);
    let ended = Ended { exit, started, ended };
    // As long as it is not written down, the attempt counts as running: nobody may take it for lost.
    if let Err(error) = record.write(&ended) {
        say(format_args!("cannot write the exit down, trying again: {error}"));
        while record.write(&ended).is_err() {
            thread::sleep(AGAIN);
        }
    }
}

/// For the shim's own log. A disk that is full must not end a shim, as `eprintln!` would.
pub(super) fn say(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{words}");
}

/// Ends whatever an attempt has left.
pub(super) fn clear_up(order: &Order, cgroup: Option<&Cgroup>) {
    end_descendants(cgroup);
    if let Some(command) = &order.afterwards {
        let order = Order { directory: "/".into(), ..order.clone() };
        match start(&order, command, Stdio::null, None) {
            Ok(mut child) => {
                let until = Instant::now() + PATIENCE;
                while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
                    thread::sleep(Duration::from_millis(5));
                }
            }
            Err(words) => say(format_args!("{words}")),
        }
        end_descendants(None);
    }
    if let Some(cgroup) = cgroup {
        cgroup.end();
    }
}

fn run(folder: &AttemptFolder, order: &Order, cgroup: Option<&Cgroup>) -> Result<Exit, String> {
    let cannot = |what: &str, error: io::Error| format!("cannot {what}: {error}");
    let user = order.user.as_ref();
    let log = |path| BoundedLog::create(path, user, order.log_limit).map_err(|error| cannot("make its logs", error));
    let (output, errors) = (log(folder.output())?, log(folder.errors())?);
    // The folder is not the user's, so that the file has to be there for them.
    owned(&folder.progress(), user).map_err(|error| cannot("make a file for its progress", error))?;
    let copies = [copy_to(order.output.as_deref(), user)?, copy_to(order.error.as_deref(), user)?];
    let asked = SignalFd::with_flags(&signals(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
    let asked = asked.map_err(|error| cannot("listen to signals", error.into()))?;

    let mut child = start(order, &order.command, Stdio::piped, cgroup)?;
    let job = number(&child).ok_or("the kernel gave it no number")?;
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let mut streams: Vec<Stream> = Vec::new();
    for ((pipe, log), copy) in pipes.into_iter().zip([output, errors]).zip(copies) {
        let pipe = pipe.map(File::from);
        // Where a read could block, the shim would be deaf.
        let _ = pipe.as_ref().map(|pipe| ioctl_fionbio(pipe, true));
        streams.push(Stream { pipe, log, copy });
    }

    let mut buffer = vec![0; 64 * 1024];
    let exit = loop {
        let mut fds = vec![PollFd::new(&asked, PollFlags::IN)];
        fds.extend(
            streams.iter().filter_map(|stream| stream.pipe.as_ref()).map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)),
        );
        let _ = poll(&mut fds, None);
        for stream in &mut streams {
            stream.take(&mut buffer);
        }
        while let Ok(Some(signal)) = asked.read_signal() {
            if let Ok(signal) = Signal::try_from(signal.ssi_signo.cast_signed()) {
                pass_on(signal, job, order, cgroup);
            }
        }
        if let Some(exit) = reap(job) {
            break exit;
        }
    };
    // What the others wrote up to their end belongs to the log, and those who have the pipe and are none of ours are not waited for.
    end_descendants(cgroup);
    for mut stream in streams {
        while stream.take(&mut buffer) {}
        stream.log.finish();
    }
    Ok(exit)
}

/// Collects those who ended; how the job did, if it is among them.
fn reap(job: Pid) -> Option<Exit> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == job {
            return Some(exit(status));
        }
    }
    None
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}

/// The job has not been waited for, so its number, and that of its group, are still its own.
fn pass_on(signal: Signal, job: Pid, order: &Order, cgroup: Option<&Cgroup>) {
    let number = match signal {
        CHECKPOINT => order.checkpoint_signal,
        TERMINATE => Signal::SIGTERM as i32,
        KILL => Signal::SIGKILL as i32,
        _ => return,
    };
    if let (KILL, Some(cgroup)) = (signal, cgroup) {
        cgroup.kill();
    }
    let group = unistd::Pid::from_raw(job.as_raw_nonzero().get());
    let sent = Signal::try_from(number).and_then(|signal| nix::sys::signal::killpg(group, signal));
    if let Err(error) = sent {
        say(format_args!("cannot send signal {number}: {error}"));
    }
}

/// Opens what the user asked for, with the user's own rights. What blocks, as a pipe may, is not waited for.
fn copy_to(path: Option<&Path>, user: Option<&RunAs>) -> Result<Option<File>, String> {
    let Some(path) = path else { return Ok(None) };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = with_rights_of(user, || File::options().append(true).create(true).custom_flags(flags).open(path));
    opened.map(Some).map_err(|error| format!("cannot write to {}: {error}", path.display()))
}

/// One of the job's two streams.
struct Stream {
    pipe: Option<File>,
    log: BoundedLog,
    copy: Option<File>,
}

impl Stream {
    /// Takes what there is, as much as the buffer holds; whether there may be more.
    fn take(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(length) => {
                let bytes = &buffer[..length];
                self.log.write(bytes);
                // The log has it all the same.
                if let Some(Err(error)) = self.copy.as_mut().map(|copy| copy.write_all(bytes)) {
                    say(format_args!("the copy of the output ends here: {error}"));
                    self.copy = None;
                }
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
        false
    }
}
