//! Version 2 of cgroups limits only groups whose parent holds no processes. So the manager moves into a leaf of its own group, and enables
//! controllers for the groups of its jobs beside it.

use std::fs;
use std::io;
use std::path::Path;

use super::hierarchy::Hierarchies;

/// The name of the manager's own group.
pub(super) const LEAF: &str = "carma.manager";

/// The controllers that limit jobs.
const CONTROLLERS: [&str; 3] = ["memory", "cpu", "pids"];

/// Prepares this process's own group of version 2 for limits of jobs, as far as the system permits. Called once, when a manager starts.
pub fn prepare_own_group() {
    let Some(group) = Hierarchies::own().unified else { return };
    if let Err(error) = prepare(&group, &fs::read_to_string("/proc/self/comm").unwrap_or_default()) {
        tracing::debug!("{} cannot hold groups with limits: {error}", group.display());
    }
}

fn prepare(group: &Path, program: &str) -> io::Result<()> {
    let available = fs::read_to_string(group.join("cgroup.controllers"))?;
    let enabled = fs::read_to_string(group.join("cgroup.subtree_control"))?;
    let has = |list: &str, name: &str| list.split_whitespace().any(|controller| controller == name);
    let missing: Vec<&str> = CONTROLLERS.into_iter().filter(|name| has(&available, name) && !has(&enabled, name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let leaf = group.join(LEAF);
    fs::create_dir(&leaf).or_else(|error| if leaf.is_dir() { Ok(()) } else { Err(error) })?;
    let procs = leaf.join("cgroup.procs");
    fs::write(&procs, std::process::id().to_string())?;
    // Shims of a manager before this one. Other processes are left where they are.
    for pid in fs::read_to_string(group.join("cgroup.procs"))?.lines() {
        if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == program) {
            let _ = fs::write(&procs, pid);
        }
    }
    // One after the other: the kernel takes all or none of a list.
    for controller in missing {
        fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the files that a group has.
    fn group(available: &str, enabled: &str) -> tempfile::TempDir {
        let group = tempfile::tempdir().unwrap();
        for (file, text) in [("cgroup.controllers", available), ("cgroup.subtree_control", enabled), ("cgroup.procs", "")] {
            fs::write(group.path().join(file), text).unwrap();
        }
        group
    }

    #[test]
    fn the_manager_leaves_its_group_and_enables_what_is_missing() {
        let group = group("cpuset cpu memory", "cpu\n");
        prepare(group.path(), "carma\n").unwrap();
        let moved = fs::read_to_string(group.path().join(LEAF).join("cgroup.procs")).unwrap();
        assert_eq!(moved, std::process::id().to_string());
        assert_eq!(fs::read_to_string(group.path().join("cgroup.subtree_control")).unwrap(), "+memory");
    }

    #[test]
    fn ready_groups_and_groups_without_controllers_are_unchanged() {
        for (available, enabled) in [("cpu memory pids", "cpu memory pids"), ("", "")] {
            let group = group(available, enabled);
            prepare(group.path(), "carma\n").unwrap();
            assert!(!group.path().join(LEAF).exists());
        }
    }
}
