//! What control groups offer to a process, for people.

use std::fs;
use std::path::PathBuf;

use super::hierarchy::Hierarchies;
use super::limits::GroupVersion;

/// The control groups of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSupport {
    /// The newest version in which it has a group; unset: no group of it can be seen.
    pub version: Option<GroupVersion>,
    /// Its group of version 2.
    pub group: Option<PathBuf>,
    /// The controllers of that group.
    pub controllers: Vec<String>,
}

impl GroupSupport {
    /// Of a process, or of this one.
    pub fn of(process: Option<u32>) -> Self {
        let process = process.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::in_hierarchies(Hierarchies::parse(&read("/proc/self/mountinfo"), &read(&format!("/proc/{process}/cgroup"))))
    }

    fn in_hierarchies(hierarchies: Hierarchies) -> Self {
        let legacy = hierarchies.legacy("memory").or_else(|| hierarchies.legacy("pids")).is_some();
        let version = match &hierarchies.unified {
            // Beside version 1, that of version 2 has no controllers.
            Some(_) if !legacy => Some(GroupVersion::Two),
            _ => legacy.then_some(GroupVersion::One),
        };
        let group = hierarchies.unified;
        let listed = group.as_ref().and_then(|group| fs::read_to_string(group.join("cgroup.controllers")).ok()).unwrap_or_default();
        Self { version, group, controllers: listed.split_whitespace().map(str::to_owned).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controllers_are_those_of_the_processes_own_group() {
        let mount = tempfile::tempdir().unwrap();
        fs::create_dir(mount.path().join("jobs")).unwrap();
        fs::write(mount.path().join("jobs/cgroup.controllers"), "cpu memory pids\n").unwrap();
        let mounts = format!("30 22 0:26 / {} rw - cgroup2 cgroup2 rw\n", mount.path().display());
        let found = GroupSupport::in_hierarchies(Hierarchies::parse(&mounts, "0::/jobs\n"));
        assert_eq!((found.version, found.controllers), (Some(GroupVersion::Two), ["cpu", "memory", "pids"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn hybrid_hosts_have_version_1() {
        let mounts = "30 22 0:26 / /none/unified rw - cgroup2 cgroup2 rw\n31 22 0:27 / /none/memory rw - cgroup cgroup rw,memory\n";
        let version = |groups| GroupSupport::in_hierarchies(Hierarchies::parse(mounts, groups)).version;
        assert_eq!(version("6:memory:/jobs\n0::/jobs\n"), Some(GroupVersion::One));
        assert_eq!(version(""), None);
    }
}
