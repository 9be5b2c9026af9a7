//! Limits on a group, by the files of either version of cgroups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::device_filter::{CONTROL_MINORS, GPU_MAJOR, deny_others};
use super::hierarchy::Hierarchies;
use crate::attempt::HostLimits;

/// Which limits of a job the kernel enforces here. The others are known to the scheduler only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one answer for each limit")]
pub struct Enforced {
    /// Memory of the host (`--host-mem`).
    pub memory: bool,
    /// Cores of the host (`--cpus`).
    pub cpus: bool,
    /// The number of processes and threads.
    pub processes: bool,
    /// Only the job's own GPUs can be opened.
    pub gpus: bool,
    /// The control groups of jobs; unset: they have none.
    pub groups: Option<GroupVersion>,
}

/// The version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVersion {
    /// A hierarchy for each controller.
    One,
    /// One hierarchy.
    Two,
}

impl Enforced {
    /// What is not enforced, for people.
    pub fn missing(self) -> Vec<&'static str> {
        let limits = [
            (self.memory, "host memory (--host-mem)"),
            (self.cpus, "cores (--cpus)"),
            (self.processes, "number of processes"),
            (self.gpus, "access to GPUs of other jobs"),
        ];
        limits.into_iter().filter(|(enforced, _)| !enforced).map(|(_, limit)| limit).collect()
    }
}

/// A limit with a controller: its value and its file, by version.
struct Limit {
    controller: &'static str,
    value: Option<u64>,
    unified: &'static str,
    legacy: &'static str,
}

/// Microseconds of a core in which a quota of cores counts; the kernel's default.
const PERIOD: u64 = 100_000;

/// The name of the file that ends all processes of a group when one is killed for lack of memory.
const KILL_TOGETHER: &str = "memory.oom.group";

/// Limits a new group. Returns the groups of version 1 that were created besides, for the controllers that version 2 lacks here.
pub(super) fn apply(group: &Path, hierarchies: &Hierarchies, limits: &HostLimits) -> (Enforced, Vec<PathBuf>) {
    let mut beside = V1Groups { name: group.file_name().unwrap_or_default().into(), hierarchies, created: Vec::new() };
    let [memory, cpus, processes] = [
        Limit {
            controller: "memory",
            value: limits.memory.map(|memory| memory.0 << 20),
            unified: "memory.max",
            legacy: "memory.limit_in_bytes",
        },
        Limit {
            controller: "cpu",
            value: limits.cpus.map(|cpus| u64::from(cpus) * PERIOD),
            unified: "cpu.max",
            legacy: "cpu.cfs_quota_us",
        },
        Limit { controller: "pids", value: limits.processes, unified: "pids.max", legacy: "pids.max" },
    ]
    .map(|limit| set(group, &limit, &mut beside));
    // A training run without one of its workers hangs or fails later.
    let _ = fs::write(group.join(KILL_TOGETHER), "1");
    let gpus = limits.gpus.as_ref().is_some_and(|gpus| deny_other_gpus(group, gpus, &mut beside).is_ok());
    (Enforced { memory, cpus, processes, gpus, groups: None }, beside.created)
}

/// How many processes of these groups the kernel ended for lack of memory; none if no group counts them.
pub(super) fn oom_kills<'a>(groups: impl Iterator<Item = &'a Path>) -> Option<u64> {
    count(groups, &[("memory.events", "oom_kill "), ("memory.oom_control", "oom_kill ")])
}

/// Whether these groups needed more memory than their limit. A host that is out of memory does not count.
pub(super) fn is_at_memory_limit<'a>(groups: impl Iterator<Item = &'a Path>) -> bool {
    count(groups, &[("memory.events", "oom "), ("memory.failcnt", "")]).is_some_and(|times| times > 0)
}

/// The number behind a word in the first of these files that exists.
fn count<'a>(groups: impl Iterator<Item = &'a Path>, files: &[(&str, &str)]) -> Option<u64> {
    groups.flat_map(|group| files.iter().map(|(file, word)| (group.join(file), *word))).find_map(|(file, word)| {
        let text = fs::read_to_string(file).ok()?;
        text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
    })
}

/// Sets a limit in the group itself, or in a group of version 1.
fn set(group: &Path, limit: &Limit, beside: &mut V1Groups<'_>) -> bool {
    let write = |folder: &Path, file: &str| limit.value.is_some_and(|value| fs::write(folder.join(file), value.to_string()).is_ok());
    if group.join(limit.unified).exists() {
        return write(group, limit.unified);
    }
    // Without a limit, the memory controller still counts out-of-memory kills.
    if limit.value.is_none() && limit.controller != "memory" {
        return false;
    }
    beside.group(limit.controller).is_some_and(|folder| write(&folder, limit.legacy))
}

fn deny_other_gpus(group: &Path, gpus: &[u32], beside: &mut V1Groups<'_>) -> io::Result<()> {
    let allowed: Vec<u32> = gpus.iter().copied().chain(CONTROL_MINORS).collect();
    if deny_others(group, GPU_MAJOR, &allowed).is_ok() {
        return Ok(());
    }
    let folder = beside.group("devices").ok_or(io::ErrorKind::Unsupported)?;
    fs::write(folder.join("devices.deny"), format!("c {GPU_MAJOR}:* rwm"))?;
    allowed.iter().try_for_each(|minor| fs::write(folder.join("devices.allow"), format!("c {GPU_MAJOR}:{minor} rwm")))
}

/// Groups of version 1 with the same name, created when they are needed.
struct V1Groups<'a> {
    name: PathBuf,
    hierarchies: &'a Hierarchies,
    created: Vec<PathBuf>,
}

impl V1Groups<'_> {
    fn group(&mut self, controller: &str) -> Option<PathBuf> {
        let folder = self.hierarchies.legacy(controller)?.join(&self.name);
        // Two controllers may share a hierarchy, and the group itself may be in it.
        if !folder.is_dir() {
            fs::create_dir(&folder).ok()?;
            self.created.push(folder.clone());
        }
        Some(folder)
    }
}

#[cfg(test)]
mod tests {
    use carma_core::MiB;

    use super::*;

    #[test]
    fn limits_are_written_to_the_files_of_version_2() {
        let group = tempfile::tempdir().unwrap();
        for file in ["memory.max", "cpu.max", "pids.max", "memory.oom.group"] {
            fs::write(group.path().join(file), "").unwrap();
        }
        let limits = HostLimits { memory: Some(MiB(3)), cpus: Some(2), processes: Some(100), gpus: None };
        let (enforced, created) = apply(group.path(), &Hierarchies::default(), &limits);
        assert_eq!(enforced, Enforced { memory: true, cpus: true, processes: true, ..Enforced::default() });
        assert!(created.is_empty());
        let files =
            ["memory.max", "cpu.max", "pids.max", "memory.oom.group"].map(|file| fs::read_to_string(group.path().join(file)).unwrap());
        assert_eq!(files, ["3145728", "200000", "100", "1"]);
    }

    #[test]
    fn kills_for_lack_of_memory_are_counted_by_either_version() {
        let group = tempfile::tempdir().unwrap();
        let kills = || oom_kills([group.path()].into_iter());
        assert_eq!(kills(), None);
        fs::write(group.path().join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\n").unwrap();
        assert_eq!(kills(), None, "before 4.13 it does not count");
        fs::write(group.path().join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n").unwrap();
        assert_eq!(kills(), Some(2));
        fs::write(group.path().join("memory.events"), "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n").unwrap();
        assert_eq!(kills(), Some(3));
        assert!(is_at_memory_limit([group.path()].into_iter()));
    }
}
