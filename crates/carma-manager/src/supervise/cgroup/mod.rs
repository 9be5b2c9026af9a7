//! Control groups of attempts, if this process may create them: the processes of a job are known, can be killed together, and are limited.

mod device_filter;
mod entrances;
mod hierarchy;
mod leaf;
mod limits;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use carma_core::MiB;
use rustix::fs::{FsWord, statfs};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(super) use self::entrances::Entrances;
pub(super) use self::hierarchy::Hierarchies;
pub use self::leaf::prepare_own_group;
pub use self::limits::Enforced;
use crate::attempt::HostLimits;

/// The names of our groups begin with this.
const PREFIX: &str = "carma-";

/// The file system types of both versions.
const FILESYSTEMS: [FsWord; 2] = [0x6367_7270, 0x0027_e0eb];

/// How often the removal of a group with ending members is tried, and the pause in between.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// The control groups of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cgroup {
    /// The group that tells which processes belong to the attempt.
    main: PathBuf,
    /// Groups of version 1 with limits only.
    beside: Vec<PathBuf>,
    enforced: Enforced,
}

impl Cgroup {
    /// Creates a group with this unused name and these limits in these hierarchies; unset if that is not allowed.
    pub(super) fn create(name: &str, hierarchies: &Hierarchies, limits: &HostLimits) -> Option<Self> {
        let main = hierarchies.homes().map(|home| home.join(format!("{PREFIX}{name}"))).find(|path| fs::create_dir(path).is_ok())?;
        let (enforced, beside) = limits::apply(&main, hierarchies, limits);
        Some(Self { main, beside, enforced })
    }

    /// Existing groups of ours. Groups of others and folders that only look like a group are never touched.
    pub(super) fn at(main: &Path, beside: &[PathBuf]) -> Option<Self> {
        let beside = beside.iter().filter_map(|path| ours(path)).collect();
        Some(Self { main: ours(main)?, beside, enforced: Enforced::default() })
    }

    /// The folder of the main group.
    pub(super) fn path(&self) -> &Path {
        &self.main
    }

    /// The folders of the groups with limits only.
    pub(super) fn beside(&self) -> &[PathBuf] {
        &self.beside
    }

    /// Which of the limits were set at creation.
    pub(super) const fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Opens its entrances.
    pub(super) fn entrances(&self) -> io::Result<Entrances> {
        Entrances::open(self.folders())
    }

    /// All processes in it and in the groups below.
    pub(super) fn members(&self) -> Vec<i32> {
        let text = with_subgroups(&self.main).into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        text.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
    }

    /// How many of its processes the kernel ended for lack of memory; unset if no group counts them.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        limits::oom_kills(self.folders())
    }

    /// Whether its processes once needed more memory than its limit.
    pub(super) fn is_at_memory_limit(&self) -> bool {
        limits::is_at_memory_limit(self.folders())
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        if fs::write(self.main.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // Older kernels cannot kill a group at once. A pid may have been reused: membership is checked again once we hold a pidfd.
        for pid in self.members() {
            let handle = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
            if let Some(handle) = handle.filter(|_| self.members().contains(&pid)) {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            }
        }
    }

    /// Kills all its processes, and removes it when they are gone.
    pub(super) fn end(&self) {
        for _ in 0..TRIES {
            let gone = self.folders().all(|folder| removed(folder) || with_subgroups(folder).iter().rev().all(|group| removed(group)));
            if gone {
                return;
            }
            self.kill();
            thread::sleep(PAUSE);
        }
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        [self.main.as_path()].into_iter().chain(self.beside.iter().map(PathBuf::as_path))
    }
}

/// Which limits can be enforced for jobs of this process, tried on a group that is removed again.
pub fn enforceable() -> Enforced {
    let limits = HostLimits { memory: Some(MiB(1024)), cpus: Some(1), processes: Some(1024), gpus: Some(Vec::new()) };
    let group = Cgroup::create(&format!("probe-{}", std::process::id()), &Hierarchies::own(), &limits);
    group.inspect(Cgroup::end).map(|group| group.enforced()).unwrap_or_default()
}

/// The real path of a group, if it is one of ours.
fn ours(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let ours = path.file_name()?.to_str()?.starts_with(PREFIX);
    (ours && FILESYSTEMS.contains(&statfs(&path).ok()?.f_type)).then_some(path)
}

fn removed(group: &Path) -> bool {
    fs::remove_dir(group).is_ok() || !group.exists()
}

/// A group and all below it, from the top.
fn with_subgroups(group: &Path) -> Vec<PathBuf> {
    let mut groups = vec![group.to_owned()];
    let mut next = 0;
    while let Some(group) = groups.get(next) {
        let below = fs::read_dir(group).into_iter().flatten().flatten();
        groups
            .extend(below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect::<Vec<_>>());
        next += 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_only_looks_like_a_group_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("carma-1-1");
        fs::create_dir(&path).unwrap();
        assert_eq!(Cgroup::at(&path, &[]), None);
        std::os::unix::fs::symlink("/sys/fs/cgroup", folder.path().join("carma-2-1")).unwrap();
        assert_eq!(Cgroup::at(&folder.path().join("carma-2-1"), &[]), None, "one that is not ours by another name");
        // Only if this process may create one.
        if let Some(created) = Cgroup::create("1-1-test", &Hierarchies::own(), &HostLimits::default()) {
            let found = Cgroup::at(created.path(), created.beside()).unwrap();
            assert_eq!((&found.main, &found.beside), (&created.main, &created.beside));
            created.end();
            assert!(!created.path().exists() && created.beside().iter().all(|group| !group.exists()));
        }
    }
}
