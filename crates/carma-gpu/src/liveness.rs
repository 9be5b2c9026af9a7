//! Processes: whether one is still there, and whether it is still the same one.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Poll interval of a process if the kernel has no handle for it.
const PAUSE: Duration = Duration::from_millis(5);

/// The start time of a process, in the kernel's clock ticks since boot; unset if there is none, or only a zombie. A pid
/// is reused some day, the pair of both is not.
pub fn process_started(pid: u32) -> Option<u64> {
    // The driver frees everything of a process as soon as it ends, whether or not its parent has reaped it.
    process_state(pid).map(|(started, _)| started)
}

/// The same for a live process, and whether a signal has stopped it: then it keeps its memory, and runs nothing.
pub fn process_state(pid: u32) -> Option<(u64, bool)> {
    stat(pid).filter(|stat| !stat.remains).map(|stat| (stat.started, stat.stopped))
}

/// The kernel's record of a process.
struct Stat {
    remains: bool,
    stopped: bool,
    parent: u32,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain any bytes, even brackets, blanks and partial characters: the fields follow its last bracket.
    let text = str::from_utf8(text.rsplit(|byte| *byte == b')').next()?).ok()?;
    let mut fields = text.split_whitespace();
    let state = fields.next()?;
    let (remains, stopped) = (matches!(state, "Z" | "X"), matches!(state, "T" | "t"));
    Some(Stat { remains, stopped, parent: fields.next()?.parse().ok()?, started: fields.nth(17)?.parse().ok()? })
}

/// A process, never confused with a later one of the same number.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    started: u64,
    /// The kernel's handle; Linux has them since 5.3.
    handle: Option<OwnedFd>,
}

impl Process {
    /// The process with this pid, if any.
    pub(crate) fn find(pid: u32) -> Option<Self> {
        let started = process_started(pid)?;
        let handle = pidfd_open(raw(pid)?, PidfdFlags::empty()).ok();
        // Checked again: the handle may be of a process that took the number in between.
        (process_started(pid) == Some(started)).then_some(Self { pid, started, handle })
    }

    /// Its number.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Waits for its end, up to this long.
    pub(crate) fn ends_within(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &self.handle {
                Some(handle) => {
                    let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
                    if let Ok(ready) = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout)) {
                        return ready > 0;
                    }
                }
                None if process_started(self.pid) != Some(self.started) => return true,
                None => thread::sleep(PAUSE.min(left)),
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        // It may have ended meanwhile.
        let _ = match (&self.handle, raw(self.pid)) {
            (Some(handle), _) => pidfd_send_signal(handle, Signal::KILL),
            (None, Some(pid)) if !self.has_ended() => kill_process(pid, Signal::KILL),
            _ => Ok(()),
        };
    }

    /// The name it was called by, without folders.
    pub(crate) fn name(&self) -> Option<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).ok()?;
        let name = String::from_utf8_lossy(line.split(|byte| *byte == 0).next()?).into_owned();
        Some(name.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// Processes it started that are still its own.
    pub(crate) fn children(&self) -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == self.pid)).filter_map(Self::find).collect()
    }
}

fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(pid.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_distinguished_from_a_zombie() {
        assert!(process_started(std::process::id()).is_some());
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        while process_started(pid).is_some() {
            thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "its remains are still there");
        child.wait().unwrap();
        assert_eq!(process_started(pid), None);
    }

    #[test]
    fn names_may_be_any_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(std::ffi::OsStr::from_bytes(b"a) \xe8\xae\xad\xe7"));
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("3600").stdin(Stdio::null()).spawn().unwrap();
        let folder = format!("/proc/{}", child.id());
        while !fs::read(format!("{folder}/comm")).unwrap().starts_with(b"a) ") {
            thread::yield_now();
        }
        assert!(process_started(child.id()).is_some());
        assert!(crate::ownership(child.id()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn an_exit_is_noticed_with_and_without_a_pidfd() {
        for handle in [true, false] {
            let mut child = sleeper();
            let mut process = Process::find(child.id()).unwrap();
            if !handle {
                process.handle = None;
            }
            assert!(!process.has_ended());
            process.kill();
            assert!(process.ends_within(Duration::from_secs(60)));
            child.wait().unwrap();
            assert!(process.has_ended() && Process::find(child.id()).is_none());
        }
    }

    #[test]
    fn children_and_names_are_known() {
        let mut child = sleeper();
        let children = Process::find(std::process::id()).unwrap().children();
        let found = children.iter().find(|process| process.pid() == child.id()).unwrap();
        // Until it has become the program, it still has our name.
        while found.name().as_deref() != Some("sleep") {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
