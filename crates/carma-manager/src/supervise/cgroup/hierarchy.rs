//! Where this process may create control groups, in both versions of cgroups.

use std::fs;
use std::path::{Path, PathBuf};

use super::jobs_unit::group_of_jobs;
use super::leaf::LEAF;

/// Usable hierarchies of version 1, best first. They only have to show which processes belong together.
const V1_HOMES: [&str; 3] = ["pids", "freezer", "name=systemd"];

/// The control groups of this process: one of version 2, and one per controller of version 1.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::supervise) struct Hierarchies {
    /// The group of version 2 below which groups are created: that of the jobs' unit or of the manager, not the leaf it moved to.
    pub(super) unified: Option<PathBuf>,
    legacy: Vec<(String, PathBuf)>,
}

impl Hierarchies {
    /// Those of this process.
    pub(in crate::supervise) fn own() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let mut own = Self::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        own.unified = own.unified.map(group_of_jobs);
        own
    }

    /// Of the process with these groups.
    pub(super) fn parse(mounts: &str, groups: &str) -> Self {
        let mut found = Self::default();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            if controllers.is_empty() {
                found.unified = folder(mounts, "cgroup2", None, without_leaf(path));
            }
            for controller in controllers.split(',').filter(|name| !name.is_empty()) {
                found.legacy.extend(folder(mounts, "cgroup", Some(controller), path).map(|folder| (controller.to_owned(), folder)));
            }
        }
        found
    }

    /// Where a group that holds a job's processes can be created, best first.
    pub(super) fn homes(&self) -> impl Iterator<Item = &Path> {
        self.unified.as_deref().into_iter().chain(V1_HOMES.iter().filter_map(|name| self.legacy(name)))
    }

    /// The group of this process in the hierarchy of a controller of version 1.
    pub(super) fn legacy(&self, controller: &str) -> Option<&Path> {
        self.legacy.iter().find(|(name, _)| name == controller).map(|(_, folder)| folder.as_path())
    }
}

/// A manager in its leaf creates groups beside the leaf.
fn without_leaf(path: &str) -> &str {
    path.strip_suffix(LEAF).and_then(|path| path.strip_suffix('/')).map_or(path, |path| if path.is_empty() { "/" } else { path })
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

    fn homes(mounts: &str, groups: &str) -> Vec<PathBuf> {
        Hierarchies::parse(mounts, groups).homes().map(Path::to_owned).collect()
    }

    #[test]
    fn the_second_version_goes_first() {
        let mounts = "30 22 0:26 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
                      31 22 0:27 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n\
                      32 22 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n";
        let groups = "7:cpu,cpuacct:/slice\n6:freezer:/jobs\n0::/user.slice/a b\n";
        assert_eq!(homes(mounts, groups), [Path::new("/sys/fs/cgroup/unified/user.slice/a b"), Path::new("/sys/fs/cgroup/freezer/jobs")]);
        let found = Hierarchies::parse(mounts, groups);
        assert_eq!(found.legacy("cpu"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct/slice")));
        assert_eq!(found.legacy("memory"), None);
    }

    #[test]
    fn a_mount_may_show_a_part_of_the_hierarchy() {
        let mounts = "30 22 0:26 /docker/abc /sys/fs/cgroup rw,nosuid master:1 - cgroup2 cgroup rw\n";
        assert_eq!(homes(mounts, "0::/docker/abc/init\n"), [Path::new("/sys/fs/cgroup/init")]);
        assert!(homes(mounts, "0::/docker/def\n").is_empty(), "the mount does not show this group");
        assert!(homes("", "0::/\n").is_empty());
    }

    #[test]
    fn groups_of_jobs_are_beside_the_leaf_of_the_manager() {
        let mounts = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(
            homes(mounts, "0::/system.slice/carma.service/carma.manager\n"),
            [Path::new("/sys/fs/cgroup/system.slice/carma.service")]
        );
        assert_eq!(homes(mounts, "0::/carma.manager\n"), [Path::new("/sys/fs/cgroup")]);
    }
}
