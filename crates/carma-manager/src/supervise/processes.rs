//! Processes and their descendants.

use std::collections::HashMap;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::cgroup::Cgroup;

/// The parent of a process.
pub(super) fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, brackets included: the fields follow the last bracket.
    let fields = str::from_utf8(stat.rsplit(|byte| *byte == b')').next()?).ok()?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// The children of every process of the host.
fn children() -> HashMap<i32, Vec<i32>> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// All descendants of a process.
pub(super) fn descendants(ancestor: i32) -> Vec<i32> {
    let mut children = children();
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Kills all descendants of this process and waits until they are gone. This process must be the subreaper that inherits orphans.
pub(super) fn kill_descendants(cgroup: Option<&Cgroup>) {
    let this = getpid().as_raw_nonzero().get();
    let mut options = WaitOptions::NOHANG;
    loop {
        match wait(options) {
            Ok(Some(_)) => options = WaitOptions::NOHANG,
            Err(Errno::INTR) => {}
            Err(_) => return,
            Ok(None) => {
                if let Some(cgroup) = cgroup {
                    cgroup.kill();
                }
                // Only children: their pids are not reused before we reap them. Their children become ours when they are gone.
                for child in children().remove(&this).into_iter().flatten().filter_map(Pid::from_raw) {
                    let _ = kill_process(child, Signal::KILL);
                }
                options = WaitOptions::empty();
            }
        }
    }
}
