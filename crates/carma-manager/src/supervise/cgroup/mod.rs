//! Control groups of attempts, if this process may create them: the processes of a job are known, can be killed together, and are limited.

mod abandoned;
mod device_filter;
mod group_handles;
mod hierarchy;
mod jobs_unit;
mod leaf;
mod limits;
mod support;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use carma_core::{AttemptId, MiB};
use rustix::fs::{FsWord, statfs};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(crate) use self::abandoned::remove_abandoned;
pub(super) use self::group_handles::GroupHandles;
pub(super) use self::hierarchy::Hierarchies;
pub(crate) use self::jobs_unit::group_of_jobs;
pub use self::leaf::prepare_group_of_jobs;
pub use self::limits::{Enforced, GroupVersion};
pub use self::support::GroupSupport;
use super::folder::ProcessIdentity;
use crate::attempt::{GroupFolders, HostLimits};

/// The names of our groups begin with this.
const PREFIX: &str = "carma-";

/// The file system types of both versions.
const FILESYSTEMS: [FsWord; 2] = [0x6367_7270, 0x0027_e0eb];

/// How often the removal of a group with ending members is tried, and the pause in between.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// The control groups of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cgroup {
    folders: GroupFolders,
    enforced: Enforced,
}

impl Cgroup {
    /// Creates a group for an attempt with these limits, below that of this process; unset if that is not allowed.
    pub(crate) fn of_attempt(attempt: AttemptId, limits: &HostLimits) -> Option<Self> {
        Self::of_attempt_in(&Hierarchies::own(), attempt, limits)
    }

    /// The same in these hierarchies.
    pub(super) fn of_attempt_in(hierarchies: &Hierarchies, attempt: AttemptId, limits: &HostLimits) -> Option<Self> {
        let maker = ProcessIdentity::own()?.name();
        Self::create(&format!("{}-{}-{maker}", attempt.job.0, attempt.number), hierarchies, limits)
    }

    /// Creates a group with this unused name.
    fn create(name: &str, hierarchies: &Hierarchies, limits: &HostLimits) -> Option<Self> {
        let main = hierarchies.homes().map(|home| home.join(format!("{PREFIX}{name}"))).find(|path| fs::create_dir(path).is_ok())?;
        let (enforced, beside) = limits::apply(&main, hierarchies, limits);
        let unified = hierarchies.unified.as_ref().is_some_and(|unified| main.starts_with(unified));
        let groups = Some(if unified { GroupVersion::Two } else { GroupVersion::One });
        Some(Self { folders: GroupFolders { main, beside }, enforced: Enforced { groups, ..enforced } })
    }

    /// Existing groups of ours. Groups of others and folders that only look like a group are never touched.
    pub(crate) fn at(folders: &GroupFolders) -> Option<Self> {
        let beside = folders.beside.iter().filter_map(|path| ours(path)).collect();
        Some(Self { folders: GroupFolders { main: ours(&folders.main)?, beside }, enforced: Enforced::default() })
    }

    /// The folder of the main group.
    pub(crate) fn path(&self) -> &Path {
        &self.folders.main
    }

    /// All its folders.
    pub(crate) const fn folders(&self) -> &GroupFolders {
        &self.folders
    }

    /// Which of the limits were set at creation.
    pub(super) const fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Opens its entrances.
    pub(super) fn group_handles(&self) -> io::Result<GroupHandles> {
        GroupHandles::open(self.all())
    }

    /// All processes in it and in the groups below.
    pub(super) fn members(&self) -> Vec<i32> {
        members(self.path())
    }

    /// How many of its processes the kernel ended for lack of memory; unset if no group counts them.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        limits::oom_kills(self.all())
    }

    /// Whether its processes once needed more memory than its limit.
    pub(super) fn is_at_memory_limit(&self) -> bool {
        limits::is_at_memory_limit(self.all())
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        if fs::write(self.path().join("cgroup.kill"), "1").is_ok() {
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
    pub(crate) fn end(&self) {
        for _ in 0..TRIES {
            let gone = self.all().all(|folder| removed(folder) || with_subgroups(folder).iter().rev().all(|group| removed(group)));
            if gone {
                return;
            }
            self.kill();
            thread::sleep(PAUSE);
        }
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        [self.path()].into_iter().chain(self.folders.beside.iter().map(PathBuf::as_path))
    }
}

/// All processes in a group and in the groups below.
fn members(group: &Path) -> Vec<i32> {
    let text = with_subgroups(group).into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
    text.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
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
    fn a_folder_like_a_group_is_not_a_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("carma-1-1");
        fs::create_dir(&path).unwrap();
        let at = |path: &Path| Cgroup::at(&GroupFolders { main: path.to_owned(), beside: Vec::new() });
        assert_eq!(at(&path), None);
        std::os::unix::fs::symlink("/sys/fs/cgroup", folder.path().join("carma-2-1")).unwrap();
        assert_eq!(at(&folder.path().join("carma-2-1")), None, "one that is not ours by another name");
        // Only if this process may create one.
        if let Some(created) = Cgroup::create("1-1-test", &Hierarchies::own(), &HostLimits::default()) {
            let found = Cgroup::at(created.folders()).unwrap();
            assert_eq!(found.folders(), created.folders());
            created.end();
            assert!(created.all().all(|group| !group.exists()));
        }
    }
}
