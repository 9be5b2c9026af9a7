//! A control group for each attempt, if this process may create one: its processes are known, and can be killed together.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FsWord, statfs};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Usable hierarchies of cgroup version 1, best first. They only have to show which processes belong together.
const V1_HIERARCHIES: [&str; 3] = ["pids", "freezer", "name=systemd"];

/// The names of our groups begin with this.
const PREFIX: &str = "carma-";

/// The file system types of both versions.
const FILESYSTEMS: [FsWord; 2] = [0x6367_7270, 0x0027_e0eb];

/// How often the removal of a group with ending members is tried, and the pause in between.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// A control group of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a group with this unused name below that of this process; unset if that is not allowed.
    pub(super) fn create(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        own_groups(&mounts, &groups)
            .into_iter()
            .map(|home| home.join(format!("{PREFIX}{name}")))
            .find(|path| fs::create_dir(path).is_ok())
            .map(Self)
    }

    /// An existing group of ours. Groups of others and folders that only look like a group are never touched.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let ours = path.file_name()?.to_str()?.starts_with(PREFIX);
        (ours && FILESYSTEMS.contains(&statfs(&path).ok()?.f_type)).then_some(Self(path))
    }

    /// Its folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The file to which a process writes "0" to join.
    pub(super) fn procs_file(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.0.join("cgroup.procs"))
    }

    /// All processes in it and in the groups below.
    pub(super) fn members(&self) -> Vec<i32> {
        let text = self.with_subgroups().into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        text.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<_>>()).collect()
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        if fs::write(self.0.join("cgroup.kill"), "1").is_ok() {
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
            let gone = self.with_subgroups().iter().rev().all(|group| fs::remove_dir(group).is_ok());
            if gone || !self.0.exists() {
                return;
            }
            self.kill();
            thread::sleep(PAUSE);
        }
    }

    /// This group and all below it, from the top.
    fn with_subgroups(&self) -> Vec<PathBuf> {
        let mut groups = vec![self.0.clone()];
        let mut next = 0;
        while let Some(group) = groups.get(next) {
            let below = fs::read_dir(group).into_iter().flatten().flatten();
            groups.extend(
                below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect::<Vec<_>>(),
            );
            next += 1;
        }
        groups
    }
}

/// The folders of this process's own control groups, best first.
fn own_groups(mounts: &str, groups: &str) -> Vec<PathBuf> {
    let named = |controller: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            parts.next()?.split(',').any(|name| name == controller).then(|| parts.next())?
        })
    };
    let second = named("").and_then(|path| folder(mounts, "cgroup2", None, path));
    let first = V1_HIERARCHIES.iter().filter_map(|name| folder(mounts, "cgroup", Some(name), named(name)?));
    second.into_iter().chain(first).collect()
}

/// The folder of a group: below the mount of its hierarchy, which may show only a part of it.
fn folder(mounts: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let fits = source.next() == Some(kind)
            && controller.is_none_or(|name| source.nth(1).is_some_and(|options| options.split(',').any(|option| option == name)));
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let inside = Path::new(path).strip_prefix(root).ok()?;
        fits.then(|| Path::new(point).join(inside))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_version_goes_first() {
        let mounts = "30 22 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                      31 22 0:27 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n";
        let groups = "6:freezer:/jobs\n0::/user.slice/a b\n";
        assert_eq!(
            own_groups(mounts, groups),
            [Path::new("/sys/fs/cgroup/unified/user.slice/a b"), Path::new("/sys/fs/cgroup/freezer/jobs")]
        );
    }

    #[test]
    fn a_mount_may_show_a_part_of_the_hierarchy() {
        let mounts = "30 22 0:26 /docker/abc /sys/fs/cgroup rw,nosuid master:1 - cgroup2 cgroup rw\n";
        assert_eq!(own_groups(mounts, "0::/docker/abc/init\n"), [Path::new("/sys/fs/cgroup/init")]);
        assert!(own_groups(mounts, "0::/docker/def\n").is_empty(), "not within our sight");
        assert!(own_groups("", "0::/\n").is_empty());
    }

    #[test]
    fn a_folder_that_only_looks_like_a_group_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("carma-1-1");
        fs::create_dir(&path).unwrap();
        assert_eq!(Cgroup::at(&path), None);
        std::os::unix::fs::symlink("/sys/fs/cgroup", folder.path().join("carma-2-1")).unwrap();
        assert_eq!(Cgroup::at(&folder.path().join("carma-2-1")), None, "one that is not ours by another name");
        // Only if this process may create one.
        if let Some(made) = Cgroup::create("1-1-test") {
            assert_eq!(Cgroup::at(made.path()).as_ref(), Some(&made));
            made.end();
        }
    }
}
